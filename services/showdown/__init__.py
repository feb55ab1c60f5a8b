"""Ranks hands and divides pots over gRPC; keeps nothing."""
