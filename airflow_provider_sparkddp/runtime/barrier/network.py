"""Which network interface carries an address. Gloo and NCCL pick the loopback or the wrong one on hosts with several."""

from __future__ import annotations

import ipaddress
import socket
import struct

# linux/sockios.h: the IPv4 address of an interface
_SIOCGIFADDR = 0x8915


def address_of(host: str) -> str:
    """The IP address of a host name or address, without brackets. Raises OSError when it can't be resolved."""
    bare = host.strip("[]")
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return str(socket.getaddrinfo(bare, None, type=socket.SOCK_STREAM)[0][4][0])


def interface_of(address: str) -> str | None:
    """Name of the interface that carries the IPv4 address; None elsewhere than on Linux or when none does."""
    try:
        import fcntl
    except ImportError:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                reply = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # an interface without an IPv4 address
            if socket.inet_ntoa(reply[20:24]) == address:
                return name
    return None
