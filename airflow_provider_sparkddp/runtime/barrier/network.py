"""Which network interface carries an address, and which ports the kernel gives out.

Gloo and NCCL pick the loopback or the wrong interface on hosts with several.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from pathlib import Path

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


def stray_ports(ports: tuple[int, int], source: Path = Path("/proc/sys/net/ipv4/ip_local_port_range")) -> str | None:
    """What to tell of a host whose kernel gives out ports outside of the range; None when all lie in it, or elsewhere than on Linux.

    Gloo and NCCL listen on ports that the kernel gives them, and have no setting for it.
    """
    try:
        first, last = (int(word) for word in source.read_text().split())
    except (OSError, ValueError):
        return None
    if ports[0] <= first and last <= ports[1]:
        return None
    return (
        f"port_range is {ports[0]}-{ports[1]}, and the kernel of {socket.gethostname()} gives out the ports {first}-{last}, on which "
        f"Gloo and NCCL listen. A firewall that closes them stops the ranks: there, set sysctl "
        f"net.ipv4.ip_local_port_range='{ports[0]} {ports[1]}' (also possible for one pod or network namespace)."
    )
