"""The chaos matrix: faults, protocols and workloads; `chaos.py` says how a row is measured.

Bar of every cell: the workload goes on after the fault, with nothing lost, moved or brought
back, and is unavailable for no longer than its row allows. The table goes to build/chaos.md.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from chaos import Cell, Chaos
from faulty_broker import CHANGING, EVERYTHING, NAMING
from histories import Kind
from stand import Stand
from wire_clients import (
    KafkaWire,
    RefusedError,
    connect,
    kafka_fetch_fields,
    kafka_request,
)

TABLE = Path(__file__).parents[2] / "build" / "chaos.md"
SECONDS = 2.0
RESTART_SECONDS_MAX = 20
"""On a machine that others load too; alone it is about one."""


class Row(NamedTuple):
    """`allowed`: seconds that a cell may be unavailable, the length of the fault included."""

    fault: Callable[[Chaos], None]
    allowed: float
    lines: str = ""
    """What log lines it may cause."""
    refused_is_gone: bool = True
    """Whether what was refused must not be there: a failed flush leaves it open."""


def kill(chaos: Chaos) -> None:
    chaos.broker.kill9()
    restart(chaos)


def terminate(chaos: Chaos) -> None:
    assert chaos.broker.stop() == 0
    restart(chaos)


def power_cut(chaos: Chaos) -> None:
    with chaos.broker.disk.slow(100, "fdatasync"):
        time.sleep(0.5)
        chaos.broker.power_cut()
        restart(chaos)


def restart(chaos: Chaos) -> None:
    chaos.broker.start()
    chaos.stand.watch_anew(chaos.broker)


def stop_and_go(chaos: Chaos) -> None:
    os.kill(chaos.broker.pid, signal.SIGSTOP)
    time.sleep(SECONDS)
    os.kill(chaos.broker.pid, signal.SIGCONT)


def little_processor(chaos: Chaos) -> None:
    """As where a container has a tenth of a processor: it runs for 10 ms in each 100."""
    for _ in range(int(SECONDS / 0.1)):
        os.kill(chaos.broker.pid, signal.SIGSTOP)
        time.sleep(0.09)
        os.kill(chaos.broker.pid, signal.SIGCONT)
        time.sleep(0.01)


def slow_disk(chaos: Chaos) -> None:
    with chaos.broker.disk.slow(50):
        time.sleep(SECONDS)


def cold_slow_disk(chaos: Chaos) -> None:
    with chaos.broker.disk.slow(50, *EVERYTHING):
        for _ in range(int(SECONDS / 0.2)):
            chaos.broker.disk.forget_cache()
            time.sleep(0.2)


def slow_flush(chaos: Chaos) -> None:
    with chaos.broker.disk.slow(250, "fdatasync"):
        time.sleep(SECONDS)


def disk_full(chaos: Chaos) -> None:
    with chaos.broker.disk.fail("ENOSPC", *CHANGING, half=True):
        time.sleep(SECONDS)


def writes_fail(chaos: Chaos) -> None:
    with chaos.broker.disk.fail("EIO", *CHANGING):
        time.sleep(SECONDS)


def read_only(chaos: Chaos) -> None:
    with chaos.broker.disk.fail("EROFS", *CHANGING, *NAMING):
        time.sleep(SECONDS)


def interrupted_writes(chaos: Chaos) -> None:
    for _ in range(5):
        with chaos.broker.disk.fail("EINTR", *CHANGING, times=2):
            time.sleep(SECONDS / 5)


def no_files_left(chaos: Chaos) -> None:
    with chaos.broker.disk.fail("EMFILE", *NAMING):
        for number in range(5):
            with contextlib.suppress(RefusedError):
                KafkaWire(chaos.broker.kafka, f"no-files-{number}").create_topic()
            time.sleep(SECONDS / 5)


def failed_flush(chaos: Chaos) -> None:
    with chaos.broker.disk.fail("EIO", "fdatasync", times=1):
        time.sleep(0.5)
    chaos.broker.stop()
    restart(chaos)


def cut_connections(chaos: Chaos) -> None:
    for _ in range(4):
        chaos.cut_connections()
        time.sleep(SECONDS / 4)


def half_open_clients(chaos: Chaos) -> None:
    head = (50 << 20).to_bytes(4) + bytes.fromhex("0000000a00000001ffff")
    for _ in range(100):
        chaos.stand.connect(chaos.broker, "kafka").sendall(head)
        chaos.stand.connect(chaos.broker, "pulsar").sendall(b"\0\0")
        chaos.stand.connect(chaos.broker, "iggy").sendall(bytes(20))
    time.sleep(SECONDS)


def clients_that_read_nothing(chaos: Chaos) -> None:
    fields = kafka_fetch_fields("kafka-batched", 0, partition_max_bytes=50 << 20)
    fetch = kafka_request("Fetch", 11, **fields)
    for _ in range(20):
        chaos.stand.flood(chaos.stand.connect(chaos.broker, "kafka"), fetch * 40)
    time.sleep(SECONDS)


def flood_of_requests(chaos: Chaos) -> None:
    versions = kafka_request("ApiVersions", 0)
    for _ in range(5):
        connection = chaos.stand.connect(chaos.broker, "kafka")
        chaos.stand.drain(connection)
        chaos.stand.flood(connection, versions * 1000, times=10_000)
    time.sleep(SECONDS)


def flood_of_connections(chaos: Chaos) -> None:
    ended = threading.Event()

    def knock() -> None:
        while not ended.is_set():
            connect(chaos.broker.kafka).close()

    for _ in range(4):
        chaos.stand.run(knock)
    time.sleep(SECONDS)
    ended.set()


def clock_jumps(chaos: Chaos) -> None:
    for seconds in (3600, -3600, 86_400, 0):
        chaos.broker.disk.set_clock(seconds)
        time.sleep(SECONDS / 4)


ROWS = {
    "kill -9, restart": Row(kill, RESTART_SECONDS_MAX, "recover"),
    "SIGTERM, restart": Row(terminate, RESTART_SECONDS_MAX),
    "power cut, restart": Row(power_cut, RESTART_SECONDS_MAX, "recover"),
    "SIGSTOP for 2 s": Row(stop_and_go, 4),
    "a tenth of a processor": Row(little_processor, 6),
    "disk of 50 ms a call": Row(slow_disk, 3),
    "cold disk of 50 ms a call": Row(cold_slow_disk, 4),
    "flush of 250 ms": Row(slow_flush, 3),
    "disk full for 2 s": Row(disk_full, 4, "No space|succeed again"),
    "writes fail for 2 s": Row(writes_fail, 4, "Input/output|succeed again"),
    "read-only for 2 s": Row(read_only, 4, "Read-only|succeed again"),
    "interrupted writes": Row(interrupted_writes, 3, "Interrupted|succeed again"),
    "no files for 2 s": Row(no_files_left, 3, "Too many open files|disk"),
    "failed flush, restart": Row(
        failed_flush, RESTART_SECONDS_MAX, "Input/output|recover|LogFailed|disk", False
    ),
    "connections cut": Row(cut_connections, 3),
    "300 half-open clients": Row(half_open_clients, 2),
    "20 clients that read nothing": Row(clients_that_read_nothing, 3),
    "flood of requests": Row(flood_of_requests, 2),
    "flood of connections": Row(flood_of_connections, 2),
    "clock jumps": Row(clock_jumps, 2),
}
QUICK = "connections cut"


@pytest.fixture(scope="module")
def table() -> Iterator[dict[str, list[Cell]]]:
    """Collects the rows, and writes what there is of them."""
    rows: dict[str, list[Cell]] = {}
    yield rows
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(markdown(rows), encoding="utf-8")


def test_chaos_in_short(stand: Stand, table: dict[str, list[Cell]]) -> None:
    run(stand, table, QUICK, RESTART_SECONDS_MAX)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ROWS)
def test_chaos(stand: Stand, table: dict[str, list[Cell]], name: str) -> None:
    run(stand, table, name, ROWS[name].allowed)


def run(stand: Stand, table: dict[str, list[Cell]], name: str, allowed: float) -> None:
    row = ROWS[name]
    stand.allow("cut off|recovered|event loop|left out", *filter(None, [row.lines]))
    cells, anomalies = Chaos(stand).row(row.fault)
    table[name] = cells
    wrong = [a for a in anomalies if row.refused_is_gone or a.kind is not Kind.RESURRECTED]
    assert wrong == []
    slow = [cell for cell in cells if cell.unavailable > allowed]
    assert not slow, f"{name}: {slow}"


def markdown(rows: dict[str, list[Cell]]) -> str:
    """A line a fault: unavailability and p99 of each cell, in milliseconds."""
    some = next(iter(rows.values()), [])
    head = [f"{cell.protocol} {cell.workload}" for cell in some]
    lines = ["| fault | " + " | ".join(head) + " |", "| --- |" + " --- |" * len(head)]
    before = [f"{1000 * cell.baseline:.0f}" for cell in some]
    lines.append("| p99 before | " + " | ".join(before) + " |")
    for name, cells in rows.items():
        shown = [f"{1000 * cell.unavailable:.0f} / {1000 * cell.p99:.0f}" for cell in cells]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"
