"""Two hosts on one computer: network namespaces with their own addresses over a bridge, and a firewall around each."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

BRIDGE, NETWORK = "sddpbr0", "10.203.77"
DRIVER = f"{NETWORK}.1"
HOSTS = {"sddp-a": f"{NETWORK}.11", "sddp-b": f"{NETWORK}.12"}
CHAIN = "SPARKDDP"


def ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=True)


def remove_hosts() -> None:
    for index, name in enumerate(HOSTS):
        # The pair first: with its namespace it would go some time later, and its name be taken meanwhile.
        ip("link", "del", f"sddpv{index}", check=False)
        ip("netns", "del", name, check=False)
    ip("link", "del", BRIDGE, check=False)


def make_hosts() -> None:
    """Two namespaces, each with an interface on the bridge; this process's side of the bridge is the driver's."""
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("addr", "add", f"{DRIVER}/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    for index, (name, address) in enumerate(HOSTS.items()):
        ip("netns", "add", name)
        ip("link", "add", f"sddpv{index}", "type", "veth", "peer", "name", "eth7", "netns", name)
        ip("link", "set", f"sddpv{index}", "master", BRIDGE, "up")
        for command in (
            ["addr", "add", f"{address}/24", "dev", "eth7"],
            ["link", "set", "eth7", "up"],
            ["link", "set", "lo", "up"],
        ):
            ip("-n", name, *command)


def missing(*commands: str) -> str | None:
    """Why two hosts can't be made here."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    packages = {"ip": "iproute2", "iptables": "iptables"}
    for command in ("ip", *commands):
        if not shutil.which(command):
            return f"it needs the command {command} (Debian's {packages[command]})"
    if not shutil.which("java"):
        return "Spark needs Java 17 or newer, and none is on PATH"
    remove_hosts()
    try:
        make_hosts()
    except subprocess.CalledProcessError as error:
        return f"network namespaces can't be made here: {error.stderr.decode().strip()}"
    finally:
        remove_hosts()
    return None


@contextmanager
def kernel_ports(first: int, last: int) -> Iterator[None]:
    """The hosts' kernels give out these ports."""
    for name in HOSTS:
        setting = f"net.ipv4.ip_local_port_range={first} {last}"
        _run(["ip", "netns", "exec", name, "sysctl", "-w", setting])
    yield


@contextmanager
def firewall(first: int, last: int, service: int) -> Iterator[None]:
    """New connections to the hosts and to the driver's side are dropped, but for these ports.

    Args:
        service: the port of Spark's master, open on the driver's side.
    """
    rules = [["-p", "tcp", "--dport", f"{first}:{last}"], ["-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED"]]
    try:
        for name in HOSTS:
            _chain(["ip", "netns", "exec", name], "eth7", rules)
        _chain([], BRIDGE, [*rules, ["-p", "tcp", "--dport", str(service)]])
        yield
    finally:
        # Those of the namespaces go with them.
        with suppress(subprocess.CalledProcessError):
            _run(["iptables", "-D", "INPUT", "-i", BRIDGE, "-j", CHAIN])
            _run(["iptables", "-F", CHAIN])
            _run(["iptables", "-X", CHAIN])


def _chain(prefix: Sequence[str], interface: str, allowed: Sequence[Sequence[str]]) -> None:
    _run([*prefix, "iptables", "-N", CHAIN])
    for rule in allowed:
        _run([*prefix, "iptables", "-A", CHAIN, *rule, "-j", "ACCEPT"])
    _run([*prefix, "iptables", "-A", CHAIN, "-j", "DROP"])
    _run([*prefix, "iptables", "-I", "INPUT", "-i", interface, "-j", CHAIN])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)
