"""The test stand: a real broker under attack, and what is measured meanwhile.

A scenario starts a broker, lets well-behaved clients of the three protocols work on it, attacks it,
and compares what they measured during the attack with what they measured before:

    def test_that_an_attack_stalls_nobody(stand: Stand) -> None:
        broker = stand.start("--memory-bytes", "256MiB")
        with stand.probing(broker) as probes:
            with probes.baseline():
                time.sleep(2)
            with probes.attack():
                stand.flood(broker, "kafka", METADATA * 100_000)
            assert probes.slowdown("ping", 0.99) < 2
        assert stand.watch.peak_mib < 400

At its end the broker must be alive, answer, stop in order, and have logged no WARNING and no ERROR
but those that the scenario allowed.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psutil

from broker_process import BrokerProcess
from penstock.server.watchdog import STALL
from stalls import busy_stalls
from wire_clients import CLIENTS, KafkaWire, connect

PROBE = Path(__file__).parent / "probe_client.py"
PROBE_TOPIC = "probe"
BASELINE = "baseline"
PROTOCOLS = tuple(CLIENTS)
SAMPLE_SECONDS = 0.02
FIRST_ANSWERS_SECONDS = 60
RELEASE_SECONDS = 10
MIB = 1 << 20

_LINE = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ (WARNING|ERROR|CRITICAL) +(.*)$", re.MULTILINE)
_NEVER = ("a bug in the broker", "Traceback (most recent call last)")


class Answer(NamedTuple):
    """One thing that a probe asked. `seconds` is None where it failed, and `failure` says how."""

    protocol: str
    verb: str
    began: float
    seconds: float | None
    failure: str = ""

    @property
    def ended(self) -> float:
        return self.began + (self.seconds or 0)


@dataclass
class Latencies:
    """What probes measured over a while, in seconds."""

    answers: list[Answer] = field(default_factory=list)

    def of(self, verb: str | None = None, protocol: str | None = None) -> Latencies:
        """Those of one verb ("ping", "produce", "read", "connect"), of one protocol, or of both."""
        return Latencies(
            [
                answer
                for answer in self.answers
                if verb in (None, answer.verb) and protocol in (None, answer.protocol)
            ]
        )

    @property
    def failures(self) -> list[str]:
        return [f"{a.protocol} {a.verb}: {a.failure}" for a in self.answers if a.failure]

    @property
    def seconds(self) -> list[float]:
        """Sorted."""
        return sorted(a.seconds for a in self.answers if a.seconds is not None)

    def quantile(self, share: float) -> float:
        found = self.seconds
        assert found, "the probes measured nothing"
        return found[min(len(found) - 1, int(share * len(found)))]

    @property
    def p50(self) -> float:
        return self.quantile(0.5)

    @property
    def p99(self) -> float:
        return self.quantile(0.99)

    @property
    def worst(self) -> float:
        return self.quantile(1)

    def __str__(self) -> str:
        if not self.seconds:
            return f"no answer, {len(self.failures)} failures"
        milliseconds = ", ".join(
            f"{name} {1000 * value:.2f} ms"
            for name, value in [("p50", self.p50), ("p99", self.p99), ("max", self.worst)]
        )
        return f"{len(self.seconds)} answers, {milliseconds}, {len(self.failures)} failures"


class Probes:
    """The well-behaved clients that measure. See probe_client.py for what they ask."""

    def __init__(self, broker: BrokerProcess, topic: str, protocols: tuple[str, ...]) -> None:
        self._output = broker.folder / f"probe-{topic}.txt"
        addresses = [f"{protocol}={getattr(broker, protocol)}" for protocol in protocols]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(PROBE), topic, *addresses],
                stdin=subprocess.PIPE,
                stdout=output,
            )
        self._spans: dict[str, list[tuple[float, float]]] = {}
        try:
            self._wait_for_first_answers(protocols)
        except AssertionError:
            self.close()
            raise

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """What is measured meanwhile is kept under a name."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._spans.setdefault(name, []).append((began, time.monotonic()))

    def baseline(self) -> contextlib.AbstractContextManager[None]:
        return self.span(BASELINE)

    def attack(self) -> contextlib.AbstractContextManager[None]:
        return self.span("attack")

    def latencies(self, name: str = "attack") -> Latencies:
        """What was owed in a span. What is not answered yet counts with the time since.

        The baseline has only what was answered in it: what goes on is the attack's doing.
        """
        spans = self._spans[name]
        answers = [
            a for a in self._answers() if any(b <= a.ended and a.began < e for b, e in spans)
        ]
        if name == BASELINE:
            return Latencies([a for a in answers if a.ended <= max(e for _, e in spans)])
        return Latencies(answers + self._unanswered(spans))

    def slowdown(self, verb: str = "ping", share: float = 0.99) -> float:
        """The attack's quantile over the baseline's, of the protocol where it is worst."""
        before, during = self.latencies(BASELINE), self.latencies("attack")
        protocols = {answer.protocol for answer in before.answers}
        return max(
            during.of(verb, each).quantile(share) / before.of(verb, each).quantile(share)
            for each in protocols
        )

    def added(self, verb: str = "ping", share: float = 0.99) -> float:
        """The attack's quantile less the baseline's, in seconds, where it is worst."""
        before, during = self.latencies(BASELINE), self.latencies("attack")
        protocols = {answer.protocol for answer in before.answers}
        return max(
            during.of(verb, each).quantile(share) - before.of(verb, each).quantile(share)
            for each in protocols
        )

    def unavailable(self, name: str = "attack", verb: str = "produce") -> dict[str, float]:
        """Seconds of each protocol's longest time without a success that overlaps a span."""
        found: dict[str, float] = {}
        (began, ended), *_ = self._spans[name]
        for protocol in {answer.protocol for answer in self._answers()}:
            done = [
                a.ended
                for a in self._answers()
                if a.protocol == protocol and a.verb == verb and a.seconds is not None
            ]
            times = [t for t in done if t <= began][-1:] + [t for t in done if began < t]
            gaps = [b - a for a, b in itertools.pairwise(times) if a < ended]
            found[protocol] = max(gaps, default=float("inf"))
        return found

    def report(self) -> str:
        """All spans, verbs and protocols, for a message or a table."""
        lines = []
        for name in self._spans:
            for answer in sorted({(a.protocol, a.verb) for a in self.latencies(name).answers}):
                protocol, verb = answer
                lines.append(f"{name} {protocol} {verb}: {self.latencies(name).of(verb, protocol)}")
        return "\n".join(lines)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _answers(self) -> list[Answer]:
        text = self._output.read_text().rpartition("\n")[0]
        return [_answer(line) for line in text.splitlines()]

    def _unanswered(self, spans: list[tuple[float, float]]) -> list[Answer]:
        # A probe that hangs has no line yet: the time since its last one is what it waits at least.
        last: dict[str, float] = {}
        for answer in self._answers():
            last[answer.protocol] = answer.ended
        now, end = time.monotonic(), max(end for _, end in spans)
        return [
            Answer(protocol, "ping", since, now - since)
            for protocol, since in last.items()
            if since < end and now - since > 1
        ]

    def _wait_for_first_answers(self, protocols: tuple[str, ...]) -> None:
        deadline = time.monotonic() + FIRST_ANSWERS_SECONDS
        while {a.protocol for a in self._answers() if a.verb == "read" and a.seconds} != {
            *protocols
        }:
            assert time.monotonic() < deadline, f"no answers: {self._output.read_text()[-2000:]}"
            assert self._process.poll() is None, "the probes ended"
            time.sleep(0.02)


def _answer(line: str) -> Answer:
    protocol, verb, began, seconds, *reason = line.split(" ", 4)
    if seconds == "failed":
        return Answer(protocol, verb, float(began), None, " ".join(reason))
    return Answer(protocol, verb, float(began), float(seconds))


class Watch:
    """Samples a broker's memory, files and threads until it is closed."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.first_bytes = self.peak_bytes = self._process.memory_info().rss
        self.peak_files = self._process.num_fds()
        self.peak_threads = self._process.num_threads()
        self._first_cpu = self._last_cpu = self._cpu()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def peak_mib(self) -> float:
        """Largest resident size since the last `reset`."""
        return self.peak_bytes / MIB

    @property
    def grown_mib(self) -> float:
        """Largest resident size less the first."""
        return (self.peak_bytes - self.first_bytes) / MIB

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the broker since the last `reset`."""
        return self._last_cpu - self._first_cpu

    def reset(self) -> None:
        """Begin anew: what was before the attack does not count."""
        self.sample()
        self.first_bytes = self.peak_bytes = self._process.memory_info().rss
        self.peak_files, self.peak_threads = self._process.num_fds(), self._process.num_threads()
        self._first_cpu = self._last_cpu

    def sample(self) -> None:
        self.peak_bytes = max(self.peak_bytes, self._process.memory_info().rss)
        self.peak_files = max(self.peak_files, self._process.num_fds())
        self.peak_threads = max(self.peak_threads, self._process.num_threads())
        self._last_cpu = self._cpu()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _cpu(self) -> float:
        # The process's own clock, as clock_getcpuclockid(3) numbers it: psutil counts in ticks of
        # 10 ms, of which ten thousand acknowledgements take some five.
        return time.clock_gettime(~self._process.pid << 3 | 2)

    def _run(self) -> None:
        while not self._closed.wait(SAMPLE_SECONDS):
            try:
                self.sample()
            except (psutil.Error, OSError):  # It has ended.
                return


class Stand:
    """Everything that one scenario starts; `close` ends and checks it all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._brokers: list[BrokerProcess] = []
        self._watches: list[Watch] = []
        self._sockets: list[socket.socket] = []
        self._allowed: list[re.Pattern[str]] = []
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    # The broker.

    def start(self, *flags: str) -> BrokerProcess:
        """Start `penstock serve` with these flags over a fresh folder, and watch it."""
        return self.add(BrokerProcess(self.fresh_folder(), *flags))

    def fresh_folder(self) -> Path:
        folder = self._folder / f"broker-{len(self._brokers)}"
        folder.mkdir()
        return folder

    def add(self, broker: BrokerProcess) -> BrokerProcess:
        """Start a broker of another kind, and watch it."""
        self._brokers.append(broker)
        broker.start()
        self.watch_anew(broker)
        return broker

    def watch_anew(self, broker: BrokerProcess) -> None:
        """After a restart: the process is another one."""
        self._watches.append(Watch(broker.pid))

    @property
    def watch(self) -> Watch:
        """The watch of the broker that was started last."""
        return self._watches[-1]

    def allow(self, *patterns: str) -> None:
        """Let WARNING and ERROR lines pass in which one of these regular expressions is found."""
        self._allowed += [re.compile(pattern) for pattern in patterns]

    # The clients of good manners.

    @contextlib.contextmanager
    def probing(
        self, broker: BrokerProcess, *protocols: str, topic: str = PROBE_TOPIC
    ) -> Iterator[Probes]:
        """Have a probe of each protocol work on a topic of its own meanwhile."""
        admin = KafkaWire(broker.kafka, topic)
        admin.create_topic()
        admin.close()
        probes = Probes(broker, topic, protocols or PROTOCOLS)
        try:
            yield probes
        finally:
            print(probes.report())  # noqa: T201 (pytest shows it with a failure)
            probes.close()

    # The attackers.

    def connect(self, broker: BrokerProcess, protocol: str) -> socket.socket:
        """A raw connection, closed at the end."""
        made = connect(getattr(broker, protocol))
        self._sockets.append(made)
        return made

    def flood(self, connection: socket.socket, data: bytes, *, times: int = 1) -> None:
        """Send it all in the background, however long the broker takes; nothing is read."""

        def work() -> None:
            for _ in range(times):
                connection.sendall(data)

        self.run(work)

    def drip(self, connection: socket.socket, data: bytes, seconds: float = 1) -> None:
        """Send a byte at a time in the background, with a pause after each."""

        def work() -> None:
            for byte in data:
                connection.sendall(bytes([byte]))
                if self._stopping.wait(seconds):
                    return

        self.run(work)

    def drain(self, connection: socket.socket) -> None:
        """Read and forget what comes, in the background."""

        def work() -> None:
            while connection.recv(1 << 16):
                pass

        self.run(work)

    def run(self, work: Callable[[], None]) -> None:
        """Run something in the background until it ends or its connection does."""

        def guarded() -> None:
            with contextlib.suppress(OSError):
                work()

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    @property
    def stopping(self) -> threading.Event:
        """Set when the scenario is over: background work that loops looks at it."""
        return self._stopping

    # The end.

    def release(self) -> None:
        """End the attack: close every connection and wait for the background work."""
        self._stopping.set()
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(RELEASE_SECONDS)

    def close(self) -> None:
        """End everything, however the scenario ended."""
        self.release()
        for watch in self._watches:
            watch.close()
        for broker in self._brokers:
            broker.end()

    def check(self) -> None:
        """Hold the brokers that still run against what always holds; stops them."""
        self.release()
        for broker in self._brokers:
            if broker.is_running:
                self._check_answers(broker)
                assert broker.stop() == 0, broker.log
            self.check_log(broker)

    def check_log(self, broker: BrokerProcess) -> None:
        log = broker.log
        for text in _NEVER:
            assert text not in log, log[-8000:]
        unlisted = [
            f"{level} {text}"
            for level, text in _LINE.findall(log)
            if STALL not in text or busy_stalls(text)
            if not any(pattern.search(text) for pattern in self._allowed)
        ]
        assert not unlisted, "\n".join(unlisted[:20])

    def _check_answers(self, broker: BrokerProcess) -> None:
        for protocol, client in CLIENTS.items():
            made = client(getattr(broker, protocol), PROBE_TOPIC)
            made.ping()
            made.close()
