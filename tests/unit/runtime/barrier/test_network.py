"""The interface that carries an address, asked of the kernel."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from airflow_provider_sparkddp.runtime.barrier.network import address_of, interface_of, stray_ports

linux = pytest.mark.skipif(sys.platform != "linux", reason="interfaces are asked of Linux's kernel")


@linux
def test_the_loopback_carries_its_address() -> None:
    assert interface_of("127.0.0.1") == "lo"


@linux
def test_the_address_that_leads_outwards_belongs_to_an_interface_of_this_host() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # no packet is sent: this only asks for the route
        except OSError:
            pytest.skip("this host has no route outwards")
        address = probe.getsockname()[0]
    assert interface_of(address) in [name for _, name in socket.if_nameindex()]


@pytest.mark.parametrize("address", ["192.0.2.77", "::1", "nonsense"])
def test_an_address_that_no_interface_carries_has_none(address: str) -> None:
    assert interface_of(address) is None


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1"), ("10.1.2.3", "10.1.2.3")])
def test_an_address_is_taken_as_it_stands(host: str, address: str) -> None:
    assert address_of(host) == address


def test_a_name_is_resolved() -> None:
    assert address_of("localhost") in ("127.0.0.1", "::1")


def test_a_name_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(OSError, match="."):
        address_of("no such host")


@pytest.mark.parametrize(
    ("kernel", "tells"),
    [("34000\t34100\n", False), ("34010 34020", False), ("32768\t60999\n", True), ("33999 34050", True), ("", False)],
)
def test_a_kernel_that_gives_out_other_ports_is_told_of(kernel: str, tells: bool, tmp_path: Path) -> None:
    (tmp_path / "range").write_text(kernel)
    told = stray_ports((34000, 34100), tmp_path / "range")
    assert bool(told) == tells
    if told:
        assert "34000-34100" in told
        assert "-".join(kernel.split()) in told
        assert "net.ipv4.ip_local_port_range='34000 34100'" in told


def test_where_the_kernel_does_not_say_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert stray_ports((34000, 34100), tmp_path / "absent") is None
