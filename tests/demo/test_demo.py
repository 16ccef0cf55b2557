from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from broker_process import BrokerProcess
from penstock.cli.demo import demo_command
from penstock.clients.kafka.client import KafkaClient
from penstock.demo import tables
from penstock.demo.digest import Digest
from penstock.demo.flights import CarrierDelay, load_flights, write_events
from penstock.demo.hints import lines_to_try
from penstock.demo.processes import DemoError, run_workers, running_broker
from penstock.demo.worker import Client, Job
from spark_topics import create, fill

SECONDS = 560
"""On two idle cores it takes half a minute, most of it Spark's start."""


@pytest.mark.timeout(SECONDS + 20)
def test_the_demo_agrees_and_leaves_nothing_behind(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("penstock.demo.run.close_session", lambda: None)  # It is all tests' one.
    handler = signal.getsignal(signal.SIGTERM)
    try:
        demo_command(limit=3000)
    finally:
        signal.signal(signal.SIGTERM, handler)
    printed = capsys.readouterr().out
    assert "Everything agrees." in printed
    assert "differs" not in printed
    assert nothing_is_left(tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 20)
def test_the_whole_demo_agrees_in_a_process_of_its_own(tmp_path: Path) -> None:
    # Temporary files and processes of this run are told from others' by their folder.
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "penstock", "demo", "--limit", "3000"]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Everything agrees." in ended.stdout
    assert "differs" not in ended.stdout
    assert nothing_is_left(tmp_path)


def nothing_is_left(folder: Path) -> bool:
    running = [each for each in psutil.process_iter(["cmdline"]) if belongs_to(each, folder)]
    return not running and not list(folder.glob("penstock-demo-*"))


def belongs_to(process: psutil.Process, folder: Path) -> bool:
    return any(str(folder) in word for word in process.info["cmdline"] or [])


def test_a_broker_that_is_kept_is_used_and_ended(tmp_path: Path) -> None:
    with running_broker(tmp_path) as addresses:
        assert sorted(addresses) == ["iggy", "kafka", "pulsar"]
        topic = create(addresses["kafka"])
        fill(addresses["kafka"], topic, [(b"k", b"v")])
        told = run_workers(readers(addresses, topic, 1), tmp_path, lambda *_: None)
    assert {client: result["count"] for client, result in told.items()} == dict.fromkeys(Client, 1)
    host, _, port = addresses["kafka"].rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)


def readers(addresses: Mapping[str, str], topic: str, total: int) -> list[Job]:
    return [Job(client, addresses[client], topic, total) for client in Client]


def test_progress_is_told_for_each_client(shared_server: BrokerProcess, tmp_path: Path) -> None:
    addresses = {"kafka": shared_server.kafka, "iggy": shared_server.iggy}
    addresses["pulsar"] = shared_server.pulsar.removeprefix("pulsar://")
    topic = create(shared_server.kafka, 4)
    events = tmp_path / "events"
    expected = write_events(load_flights(3000), events)
    seen: dict[Client, int] = {}
    lock = threading.Lock()

    def report(client: Client, count: int) -> None:
        with lock:
            assert count >= seen.get(client, 0)
            seen[client] = count

    writers = [
        Job(client, addresses[client], topic, 1000, str(events), part, 3)
        for part, client in enumerate(Client)
    ]
    run_workers(writers, tmp_path, report)
    assert seen == dict.fromkeys(Client, 1000)
    told = run_workers(readers(addresses, topic, 3000), tmp_path, lambda *_: None)
    assert [Digest(**told[client]["digest"]) for client in Client] == [expected] * 3


def test_a_client_that_fails_ends_the_demo_with_its_reason(tmp_path: Path) -> None:
    events = tmp_path / "nosuch"
    job = Job(Client.KAFKA, "127.0.0.1:1", "flights", 1, str(events))
    with pytest.raises(DemoError, match=r"the kafka client ended with 1:(?s:.*)nosuch"):
        run_workers([job], tmp_path, lambda *_: None)


def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(DemoError, match="did not start"), running_broker(tmp_path):
        pass


def test_differences_are_shown() -> None:
    shown = Console(file=StringIO(), width=120)
    with shown.capture() as captured:
        shown.print(tables.events({"one": Digest(2, 7), "two": Digest(1, 7)}, Digest(2, 7)))
        shown.print(tables.delays([CarrierDelay("A", 1, None)], [CarrierDelay("A", 1, 2.0)]))
    text = captured.get()
    assert text.count("same") == 1
    assert text.count("differs") == 2


def test_the_lines_to_try_can_be_tried(shared_server: BrokerProcess) -> None:
    addresses = {"kafka": shared_server.kafka, "iggy": shared_server.iggy}
    addresses["pulsar"] = shared_server.pulsar.removeprefix("pulsar://")
    with KafkaClient(shared_server.kafka) as client:
        client.create_topic("flights", 1)
    fill(shared_server.kafka, "flights", [(b"UA1", b"one"), (b"UA2", b"two"), (b"UA3", b"three")])
    lines = re.findall(r"^python -c '[^']*'$", lines_to_try(addresses), re.MULTILINE)
    assert len(lines) == 3
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in lines:
        shell = ["sh", "-ec", line]
        tried = subprocess.run(
            shell, capture_output=True, text=True, env={"PATH": path}, timeout=60, check=False
        )
        assert all(word in tried.stdout for word in ("UA1", "one", "UA3", "three")), tried.stderr
