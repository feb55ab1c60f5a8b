"""What measurements of a running room need: its processes, players for its tables, a bare floor."""

import os

# Processes are started while this one has streams open: gRPC's handlers of fork, which would run
# before the other program does, break on that. To be said before gRPC is imported.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# And this silences its log.
import services as services
