"""The life of `penstock serve`: ready, refused, stopped in order, stopped at once."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.clients.kafka.client import KafkaClient
from penstock.server.config import Config
from penstock.server.listeners import PROTOCOLS
from penstock.server.serve import Server

StartServer = Callable[..., BrokerProcess]


def refused(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", "serve", "--data-folder", str(folder), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(server: BrokerProcess, number: int) -> None:
    assert server.stop(number) == 0
    phases = [line.partition("serve: ")[2] for line in server.log.splitlines()]
    assert [phase.split(" ")[0] for phase in phases if phase] == [
        "SIGINT:" if number == signal.SIGINT else "SIGTERM:",
        "stopping:",
        "stopping:",
        "stopping:",
        "stopped",
    ]


def test_a_client_that_asks_nothing_does_not_delay_the_end(server: BrokerProcess) -> None:
    host, _, port = server.kafka.partition(":")
    with socket.create_connection((host, int(port))):
        assert server.stop() == 0


@pytest.fixture
def long_poll(server: BrokerProcess) -> Iterator[threading.Thread]:
    """A client that waits for a message for longer than any test; the broker has its request."""
    client = KafkaClient(server.kafka)
    client.create_topic("quiet", 1)
    arrived = threading.Event()

    def wait() -> None:
        with contextlib.suppress(OSError):
            arrived.set()
            client.fetch("quiet", 0, 0, max_wait_ms=600_000)

    thread = threading.Thread(target=wait)
    thread.start()
    arrived.wait()
    with KafkaClient(server.kafka) as other:
        other.topics()  # By the time that this is answered, the earlier request is there too.
    yield thread
    thread.join(PATIENCE_SECONDS)


def test_a_request_that_waits_is_dropped_after_a_while(
    server: BrokerProcess, long_poll: threading.Thread
) -> None:
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < limits.SHUTDOWN_SECONDS + 30
    long_poll.join(PATIENCE_SECONDS)
    assert not long_poll.is_alive()


def test_a_second_ctrl_c_ends_at_once(server: BrokerProcess, long_poll: threading.Thread) -> None:
    os.kill(server.pid, signal.SIGINT)
    server.wait_for_log("connections finish")
    assert server.stop(signal.SIGINT) == 130


def test_the_ports_stay_when_it_is_started_again(server: BrokerProcess) -> None:
    before = (server.kafka, server.pulsar, server.iggy)
    server.restart()
    assert (server.kafka, server.pulsar, server.iggy) == before
    server.kill9()
    server.start()
    assert (server.kafka, server.pulsar, server.iggy) == before


def test_a_second_broker_on_the_same_folder_is_refused(server: BrokerProcess) -> None:
    ran = refused(server.data_folder)
    assert ran.returncode == 1
    assert f"in use by the broker with process id {server.pid}" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_taken_port_is_refused(server: BrokerProcess, tmp_path: Path) -> None:
    port = server.kafka.partition(":")[2]
    ran = refused(tmp_path, "--kafka-port", port)
    assert ran.returncode == 1
    assert "another program has the port" in ran.stderr
    assert "--kafka-port" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_host_that_is_not_here_is_refused_with_what_would_be_right(tmp_path: Path) -> None:
    ran = refused(tmp_path, "--host", "[::1]", "--kafka-port", "0")
    assert ran.returncode == 1
    assert "--host takes an address or a name of this machine" in ran.stderr
    assert "Traceback" not in ran.stderr


FEW_THREADS = """
import sys, threading
start, left = threading.Thread.start, int(sys.argv.pop(1))
def counted(thread):
    global left
    left -= 1
    if left < 0:
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = counted
from penstock.cli import main
main()
"""


def serve_on_free_ports(folder: Path, *how: str, files: int = 256) -> str:
    """Return the last words of a broker that can't start."""
    ports = [word for each in PROTOCOLS for word in (f"--{each}-port", "0")]
    ran = subprocess.run(
        [sys.executable, *how, "serve", "--data-folder", str(folder), *ports],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
    )
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    return ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_too_few_threads_end_it_with_what_to_do(tmp_path: Path, threads: int) -> None:
    said = serve_on_free_ports(tmp_path, "-c", FEW_THREADS, str(threads))
    assert said.startswith("penstock: the system starts no more threads: raise the limit")


def test_too_few_open_files_end_it_with_what_to_do(tmp_path: Path) -> None:
    said = serve_on_free_ports(tmp_path, "-m", "penstock", files=20)
    assert said.startswith("penstock: too many files are open: raise `ulimit -n`")


def test_a_wrong_configuration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("kafka_prot = 1\n")
    ran = refused(tmp_path)
    assert ran.returncode == 2
    assert 'penstock.toml:1: unknown key "kafka_prot"; did you mean "kafka_port"?' in ran.stderr


def run_shell(line: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        line,
        shell=True,
        capture_output=True,
        text=True,
        check=True,
        timeout=2 * PATIENCE_SECONDS,
        env=dict(os.environ, PATH=path),
    )


@pytest.fixture
def printed(tmp_path: Path) -> Iterator[str]:
    """What a broker prints when it is ready; it runs until the test is over."""
    command = [sys.executable, "-m", "penstock", "serve", "--data-folder", str(tmp_path)]
    ports = ["--kafka-port", "0", "--pulsar-port", "0", "--iggy-port", "0"]
    with subprocess.Popen(
        [*command, *ports], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        text = ""
        while "Ctrl-C" not in text:
            line = process.stdout.readline()
            assert line, text
            text += line
        yield text
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("protocol", ["Kafka", "Pulsar", "Iggy"])
def test_the_line_to_try_works_as_printed(printed: str, tmp_path: Path, protocol: str) -> None:
    line = printed.partition(f"{protocol} on ")[2].partition("\n\n")[0].partition("\n")[2]
    assert run_shell(line).returncode == 0
    reading = printed.partition("Read what they wrote:\n")[2].partition("\n")[0]
    assert run_shell(reading).stdout == "hello\n"


FIRST_WORDS = {
    "Kafka": bytes.fromhex("000000170012000300000001000568656c6c6f000668656c6c6f00"),
    "Pulsar": bytes.fromhex("000000100000000c0802120812066b61666b6121"),
    "Iggy": bytes(256),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "Redis": b"PING\r\n",
}
"""Whole first frames: what follows them is not waited for."""


def meet(address: str, words: bytes) -> None:
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(words)
        assert client.recv(1) == b""


def test_a_client_at_the_wrong_port_is_named_once_with_the_right_one(
    server: BrokerProcess,
) -> None:
    addresses = {
        "Kafka": server.kafka,
        "Pulsar": server.pulsar.removeprefix("pulsar://"),
        "Iggy": server.iggy,
    }
    expected = {
        f"looks like a client of {name}, which has port {addresses[name].partition(':')[2]}; "
        f"this one is {here}'s"
        for name in addresses
        for here in addresses
        if name != here
    }
    expected |= {f"this is HTTP, and the port is not a web port: it is {x}'s" for x in addresses}
    expected |= {f"this is Redis, which is not spoken here: the port is {x}'s" for x in addresses}
    for _ in range(2):
        for here, address in addresses.items():
            for name in FIRST_WORDS.keys() - {here}:
                meet(address, FIRST_WORDS[name])
    for said in expected:
        server.wait_for_log(said)
        assert server.log.count(said) == 1, server.log


def test_junk_at_a_port_is_told_what_the_ports_are(server: BrokerProcess) -> None:
    meet(server.kafka, b"\xff" * 20)
    server.wait_for_log(f"is it no client of Kafka? The ports are: Kafka {server.kafka[10:]}, ")


def test_a_hang_up_does_not_end_it(server: BrokerProcess) -> None:
    os.kill(server.pid, signal.SIGHUP)
    server.wait_for_log("SIGHUP: nothing to do")
    with KafkaClient(server.kafka) as client:
        assert client.topics() == []


def test_two_protocols_at_one_port_are_refused(tmp_path: Path) -> None:
    ran = refused(tmp_path, "--kafka-port", "7000", "--pulsar-port", "7000")
    assert ran.returncode == 2
    assert "kafka_port and pulsar_port are both 7000" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(("host", "is_exposed"), [("0.0.0.0", True), ("localhost", False)])
async def test_ports_that_others_reach_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, *, is_exposed: bool
) -> None:
    config = Config(data_folder=tmp_path, host=host, kafka_port=0, pulsar_port=0, iggy_port=0)
    broker = await Broker.open(tmp_path, BrokerSettings())
    server = Server(broker, config)
    try:
        await server.start()
    finally:
        await server.stop()
        await broker.close()
    assert ("there is no security yet" in caplog.text) is is_exposed


def test_a_start_loads_only_what_a_broker_needs() -> None:
    modules = ["cli.app", "cli.serve", "server.serve"]
    modules += [f"{protocol}.session" for protocol in PROTOCOLS]
    code = f"import sys, {', '.join(f'penstock.{each}' for each in modules)}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "penstock.broker.broker" in loaded
    assert not loaded & {
        "numba",
        "llvmlite",
        "pyarrow",
        "rich",
        "email",
        "tomllib",
        "multiprocessing",
        "decimal",
        "zipfile",
        "penstock.broker.schemas.avro",
        "penstock.iggy.snapshot",
        "penstock.iggy.wire.older",
    }
    own = {each for each in loaded if each.startswith("penstock")}
    assert len(loaded - own) < 290, "each one is half a millisecond of every start"
    assert len(own) < 560, "and so is each of these, however much there is that it can do"
