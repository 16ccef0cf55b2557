"""The first conversion of a broker as it is installed: nobody waits for a compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from broker_process import BrokerProcess
from penstock.limits import MIB
from wire_clients import IggyWire, KafkaWire

CONVERTING_BYTES = 100 * MIB


def mapped(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) * 1024


def children(pid: int) -> list[str]:
    return [
        child
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]


def test_the_first_conversion_takes_no_compiler(
    start_server: Callable[..., BrokerProcess],
) -> None:
    broker = start_server()
    assert "kernels/compiled" not in mapped(broker.pid), "only who converts has to load them"
    kafka = KafkaWire(broker.kafka, "orders")
    kafka.create_topic()
    kafka.produce(b"of kafka")
    iggy = IggyWire(broker.iggy, "orders")
    iggy.produce(b"of iggy")
    assert [value for _, value in iggy.read(0)] == [b"of kafka", b"of iggy"]
    assert [value for _, value in kafka.read(0)] == [b"of kafka", b"of iggy"]
    files = mapped(broker.pid)
    assert "kernels/compiled" in files
    for compiler in ("numba", "llvm"):
        assert compiler not in files
    assert children(broker.pid) == []
    assert resident_bytes(broker.pid) <= CONVERTING_BYTES
