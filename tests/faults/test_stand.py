"""The test stand sees what it is there to see."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from faulty_broker import FaultyBroker
from patience import lasted, wait_until
from stand import Stand
from wire_clients import CLIENTS, KafkaWire, RefusedError, WireClient

STOPPED_SECONDS = 1.5


def clients(broker: FaultyBroker, topic: str = "orders") -> list[WireClient]:
    KafkaWire(broker.kafka, topic).create_topic()
    return [made(getattr(broker, protocol), topic) for protocol, made in CLIENTS.items()]


def test_probes_see_a_broker_that_stops_for_a_while(stand: Stand) -> None:
    broker = stand.start()
    with stand.probing(broker) as probes:
        with probes.baseline():
            time.sleep(0.5)
        with probes.attack():
            os.kill(broker.pid, signal.SIGSTOP)
            time.sleep(STOPPED_SECONDS)
            os.kill(broker.pid, signal.SIGCONT)
            time.sleep(0.2)
        for protocol in CLIENTS:
            assert probes.latencies("attack").of(protocol=protocol).worst > 0.9 * STOPPED_SECONDS
            assert probes.latencies("baseline").of("ping", protocol).p50 < STOPPED_SECONDS / 2
            assert probes.unavailable()[protocol] > 0.9 * STOPPED_SECONDS
        assert probes.slowdown("ping", 1) > 2


def test_the_watch_sees_memory_and_files(stand: Stand) -> None:
    broker = stand.start()
    stand.watch.sample()
    files = stand.watch.peak_files
    connections = [stand.connect(broker, "kafka") for _ in range(20)]
    head = (90 << 20).to_bytes(4) + bytes.fromhex("0000000a00000001ffff")
    for connection in connections[:4]:
        stand.flood(connection, head + bytes(10 << 20))
    wait_until(lambda: stand.watch.grown_mib >= 30 and stand.watch.peak_files >= files + 10)
    assert stand.watch.cpu_seconds > 0


def test_a_line_that_nobody_allowed_fails(stand: Stand) -> None:
    broker = stand.start()
    stand.connect(broker, "kafka").sendall(b"GET / HTTP/1.1\r\n\r\n")
    broker.wait_for_log(" WARNING ")
    with pytest.raises(AssertionError, match="HTTP"):
        stand.check_log(broker)
    stand.allow("HTTP")


def test_a_slow_disk_is_slow_and_is_seen_on_the_loop(stand: Stand) -> None:
    broker = FaultyBroker(stand.fresh_folder())
    stand.add(broker)
    written = clients(broker)
    with broker.disk.slow(50, "fdatasync"):
        for client in written:
            began = time.monotonic()
            client.produce(b"slow")
            assert lasted(began, 0.05)
    assert broker.disk.loop_waits() == 0, broker.disk.figures()


def test_a_power_cut_leaves_what_was_synced(stand: Stand, tmp_path: Path) -> None:
    broker = FaultyBroker(stand.fresh_folder())
    stand.add(broker)
    offsets = [client.produce(b"safe", b"and sound") for client in clients(broker)]
    broker.power_cut()
    (file,) = broker.data_folder.rglob("*.log")
    assert file.stat().st_size > 0
    with file.open("ab") as unsynced:
        unsynced.write(b"torn")
    broker.start()
    assert offsets == [0, 2, 4]
    assert KafkaWire(broker.kafka, "orders").end_offset() == 6
    stand.allow("cut|torn|damaged|recover")


def test_a_disk_that_fails_is_heard_of(stand: Stand) -> None:
    broker = FaultyBroker(stand.fresh_folder())
    stand.add(broker)
    stand.allow("disk|failed|No space")
    client = clients(broker)[0]
    with broker.disk.fail("ENOSPC", half=True), pytest.raises(RefusedError):
        client.produce(b"too much")
    assert broker.disk.figures()["failures"]
