"""One round: a broker is started alone, runs all loads in turn, and is ended."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import Popen
from typing import Any, Final

import psutil

from versus.accounting import Watch, resident_mib
from versus.bottleneck import bottleneck
from versus.generator import Generator, GeneratorError, generating
from versus.loads import START, Kind, Load
from versus.order import Order
from versus.peers.peer import Durability, Launch, Peer
from versus.processes import running, tail, wait_for_port
from versus.scale import Scale

PORT_SECONDS: Final = 120

Result = dict[str, Any]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Layout:
    """Which processors the broker and the client may use."""

    name: str
    broker: tuple[int, ...]
    client: tuple[int, ...]

    @property
    def is_shared(self) -> bool:
        return self.broker == self.client


@dataclass(frozen=True)
class Round:
    """What all loads of a round have in common."""

    protocol: str
    peer: Peer
    number: int
    durability: Durability
    layout: Layout
    client: Path | None
    """Folder of the client, where it is not the installed one."""

    def labels(self) -> Result:
        return {
            "protocol": self.protocol,
            "broker": self.peer.name,
            "round": self.number,
            "durability": str(self.durability),
            "layout": self.layout.name,
        }


class Session:
    """A broker that runs, and the loads that are put on it."""

    def __init__(self, of: Round, scale: Scale, folder: Path) -> None:
        self._of = of
        self._scale = scale
        self._folder = folder
        self._written: dict[str, int] = {}
        """Messages by topic."""
        self._launch: Launch
        self._broker: Popen[str]

    def run(self, loads: Sequence[Load], report: Report) -> Iterator[Result]:
        """Yield one result a load; a load that fails has a `failure` instead of numbers."""
        self._launch = self._of.peer.prepare(self._folder, self._of.durability)
        with ExitStack() as stack:
            yield self._labelled(START, self._start(stack))
            self._warm_up()
            for load in loads:
                if load.writer and not self._speaks_besides_its_own(load.writer):
                    continue
                if load.protocol and load.protocol != self._of.protocol:
                    continue
                report(load.name)
                yield self._labelled(load, self._guarded(load))

    def _speaks_besides_its_own(self, protocol: str) -> bool:
        return len(self._launch.ports) > 1 and protocol in self._launch.ports

    def _start(self, stack: ExitStack) -> Result:
        """Start the broker, and time it to the answer to a client that is ready and waits."""
        launch, layout = self._launch, self._of.layout
        log = self._folder / "broker.log"
        with self._generating(self._order(START)) as generator:
            generator.wait_for_begin()
            began = time.perf_counter()
            self._broker = stack.enter_context(
                running(
                    launch.command,
                    folder=self._folder,
                    log=log,
                    cpus=layout.broker,
                    environment=launch.environment,
                )
            )
            wait_for_port(launch.ports[self._of.protocol], self._broker, PORT_SECONDS, log)
            listening = time.perf_counter() - began
            ready = resident_mib(self._broker.pid)
            generator.go()
            try:
                generator.result()
            except GeneratorError as error:
                raise RuntimeError(f"{error}; {tail(log)}") from error
            first = time.perf_counter() - began
        return {
            "listening_seconds": listening,
            "listening_resident_mib": ready,
            "seconds": first,
            "broker_resident_mib": resident_mib(self._broker.pid),
        }

    def _warm_up(self) -> None:
        """Let compilers and caches settle; what it comes to is not kept."""
        seconds = self._scale.warm_up_seconds
        for kind in (Kind.PRODUCE, Kind.CONSUME, Kind.REQUESTS):
            load = Load("warm-up", kind, "", topic="warm-up", window=16)
            self._guarded(load, seconds=seconds)

    def _guarded(self, load: Load, seconds: float | None = None) -> Result:
        if self._broker.poll() is not None:
            return {"failure": "the broker has ended by itself"}
        if load.topic and load.kind is not Kind.PRODUCE and load.topic not in self._written:
            return {"failure": f"nothing was written to {load.topic}"}
        try:
            return self._measure(load, seconds)
        except (GeneratorError, psutil.Error, OSError) as error:
            return {"failure": f"{error or type(error).__name__}"}

    def _measure(self, load: Load, seconds: float | None) -> Result:
        if load.writer:
            self._write_as(load.writer, load)
        order = self._order(load)
        if seconds is not None:
            order = replace(order, seconds=seconds)
        watch = Watch(self._broker.pid, self._launch.data)
        with ExitStack() as stack:
            beside = self._beside(load, stack)
            generator = stack.enter_context(self._generating(order))
            generator.wait_for_begin()
            watch.begin()
            told = generator.result()
            used = watch.end()
            if beside is not None:
                told |= {"latency_ms": beside.result().get("latency_ms")}
        if load.kind in (Kind.PRODUCE, Kind.AMID):
            self._written[order.topic] = told["messages"]
        return self._numbers(told | used)

    def _write_as(self, protocol: str, load: Load) -> None:
        """Have a client of another protocol write what the load reads."""
        order = self._order(replace(load, kind=Kind.PRODUCE), protocol)
        with self._generating(order) as generator:
            generator.wait_for_begin()
            self._written[order.topic] = generator.result()["messages"]

    def _beside(self, load: Load, stack: ExitStack) -> Generator | None:
        """What goes on beside the load: a producer that keeps its rate, or idle connections."""
        if load.kind is Kind.AMID:
            stack.enter_context(
                connected(self._address(self._of.protocol), self._scale.idle_connections)
            )
        if load.kind is not Kind.CATCH_UP:
            return None
        writing = replace(load, kind=Kind.PUBLISH)
        order = self._order(writing)
        generator = stack.enter_context(self._generating(order))
        generator.wait_for_begin()
        return generator

    @contextmanager
    def _generating(self, order: Order) -> Iterator[Generator]:
        with generating(order, self._folder, self._of.layout.client, self._of.client) as generator:
            yield generator

    def _numbers(self, told: Result) -> Result:
        layout = self._of.layout
        ours = told["client_cpu_seconds"] + told["broker_cpu_seconds"]
        told["others_cpu_seconds"] = max(0.0, told.pop("machine_cpu_seconds") - ours)
        told["limit"] = bottleneck(
            seconds=told["client_seconds"],
            others=told["others_cpu_seconds"],
            client_busiest=told["client_busiest_thread_seconds"],
            client=told["client_cpu_seconds"],
            broker_busiest=told["broker_busiest_thread_seconds"],
            broker=told["broker_cpu_seconds"],
            cores=len(layout.broker),
            shared=layout.is_shared,
        )
        return told

    def _order(self, load: Load, protocol: str | None = None) -> Order:
        scale = self._scale
        protocol = protocol or self._of.protocol
        topic = load.topic or load.name
        return Order(
            protocol=protocol,
            address=self._address(protocol),
            kind=load.kind,
            topic=topic,
            value_bytes=load.value_bytes,
            tuned=load.tuned,
            seconds=scale.latency_seconds if load.has_latency else scale.load_seconds,
            bytes_max=scale.load_bytes_max,
            count=self._written.get(topic, 0),
            rate=load.rate,
            window=load.window,
            partitions=scale.partitions,
            transaction=load.transaction,
            topic_options=self._launch.topic_options,
        )

    def _address(self, protocol: str) -> str:
        return f"127.0.0.1:{self._launch.ports[protocol]}"

    def _labelled(self, load: Load, numbers: Result) -> Result:
        return self._of.labels() | {"load": load.name} | numbers


def run_round(
    of: Round, loads: Sequence[Load], scale: Scale, folder: Path, report: Report
) -> Iterator[Result]:
    """Run one round in `folder`, which is emptied before and after."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # What the round before left in the page cache is not to be written out during this one.
    os.sync()
    try:
        yield from Session(of, scale, folder.resolve()).run(loads, report)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def connected(address: str, count: int) -> Iterator[None]:
    """Hold so many connections open that say nothing."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, _, port = address.partition(":")
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection((host, int(port)), 5))
        yield
