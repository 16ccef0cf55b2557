"""One client at work in a process of its own, so that three of them work at the same time.

It is started with its job as JSON and tells about it on standard output, one JSON object a line.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

from penstock.demo.flights import read_events

if TYPE_CHECKING:
    from collections.abc import Callable

    Tell: TypeAlias = Callable[..., None]

REPORT_SECONDS: Final = 0.1


class Client(StrEnum):
    """The three clients, each in a module of its own."""

    KAFKA = "kafka"
    PULSAR = "pulsar"
    IGGY = "iggy"

    @property
    def library(self) -> str:
        """The PyPI package that a user of it installs."""
        return {"kafka": "confluent-kafka", "pulsar": "pulsar-client", "iggy": "apache-iggy"}[self]


@dataclass(frozen=True)
class Job:
    """What one worker does; `events` is what to write, None to read the topic instead."""

    client: Client
    address: str
    topic: str
    total: int
    """How many events it will handle, for its progress bar."""
    events: str | None = None
    part: int = 0
    parts: int = 1

    def command(self) -> list[str]:
        """Return the command line of the process that does it."""
        return [sys.executable, "-m", "penstock.demo.worker", json.dumps(asdict(self))]


def main() -> None:
    """Do the job of this process."""
    # Pulsar's client logs to standard output; what goes there is for the log from here on.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _work(Job(**json.loads(sys.argv[1])), partial(_report, output))


def _work(job: Job, tell: Tell) -> None:
    module: Any = importlib.import_module(f"penstock.demo.{job.client}_client")
    if job.events is None:
        digest = module.read(job.address, job.topic, _reporter(tell))
        tell(count=digest.count, digest=asdict(digest), done=True)
        return
    events = list(read_events(Path(job.events), job.part, job.parts))
    module.write(job.address, job.topic, events, _reporter(tell))
    tell(count=len(events), done=True)


def _reporter(tell: Tell) -> Callable[[int], None]:
    told_at = time.monotonic()

    def report(count: int) -> None:
        nonlocal told_at
        now = time.monotonic()
        if now - told_at > REPORT_SECONDS:
            told_at = now
            tell(count=count)

    return report


def _report(output: TextIO, **what: object) -> None:
    output.write(json.dumps(what) + "\n")
    output.flush()


if __name__ == "__main__":
    main()
    # The threads of apache-iggy's runtime now and then abort a process while Python takes itself
    # down (seen once in 40 runs), when all is done and reported.
    os._exit(0)
