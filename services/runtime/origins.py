"""Where calls come from, as far as it counts for limits. Never for logs or metrics."""

import ipaddress
from typing import Final

from services.runtime.interceptors import Knock
from services.runtime.roles import Role

IPV6_SITE_BITS: Final = 64
"""Whoever has an IPv6 address has a whole network of so many bits; it counts as one."""


def origin_of(knock: Knock) -> str:
    """The player's address: where the call came from, or what a gateway says. Empty for none that
    counts: a gateway's own address is nobody's.
    """
    return site_of(knock.forwarded if Role.SERVICE in knock.caller.roles else knock.peer)


def site_of(peer: str) -> str:
    """The address in gRPC's name of a peer, or as a gateway gives it; empty for none that counts.

    This machine's own is a proxy's or a program's beside us, not a player's.
    """
    host = peer.partition(":")[2] if peer.startswith(("ipv4:", "ipv6:")) else peer
    if peer.startswith(("ipv4:", "ipv6:")):
        host = host.replace("%5B", "[").replace("%5D", "]").rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, IPV6_SITE_BITS), strict=False))
