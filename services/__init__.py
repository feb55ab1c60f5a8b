"""Doorcard: the back end of an online Seven Card Stud room. One package per service."""

import os

# gRPC's own log lines are no JSON and hold peers' addresses. It reads this when it is imported,
# which in every process of ours is after this package.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
