"""The whole room on one machine: embedded servers, supervision, bots and the `doorcard` command."""

import os

# The supervisor starts processes while bots hold streams: gRPC's handlers around a fork can crash
# the child before it becomes the program. Nothing here uses gRPC after a fork without an exec.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
