"""Names and limits on the wire that clients and servers share."""

from typing import Final

AUTHORIZATION: Final = "authorization"
BEARER: Final = "Bearer "
PLAYER_HEADER: Final = "x-doorcard-player"
"""Which player a gateway's unary call is for."""
ADDRESS_HEADER: Final = "x-doorcard-address"
"""The network address of the player that a gateway's call is for; believed of gateways only."""
TRACE_HEADER: Final = "traceparent"
"""W3C Trace Context."""

MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Largest message either way; a batch of 500 outbox entries with their hands stays below 3 MB."""
METADATA_BYTES_MAX: Final = 16 * 1024

_BOTH: Final = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    # A peer that is gone without a word is noticed within half a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)

SERVER_OPTIONS: Final = (
    *_BOTH,
    # A supervisor holds the port by a bound socket of its own while the process is being restarted.
    ("grpc.so_reuseport", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.max_concurrent_streams", 10_000),
)

CHANNEL_OPTIONS: Final = (
    *_BOTH,
    ("grpc.lb_policy_name", "round_robin"),
    # A service that was restarted is found again in well under two seconds.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Each channel has its own connections: one that is slow to write holds up nobody else's.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)
