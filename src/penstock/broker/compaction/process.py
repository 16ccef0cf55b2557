"""The broker's end of the process that compacts, which is there while something is due."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.broker.compaction.cleaner import Cleaner, StoppedError
from penstock.limits import (
    COMPACTED_IN_THREAD_BYTES,
    COMPACTED_IN_THREAD_INFLATED_BYTES,
    INFLATED_BATCH_BYTES,
)
from penstock.log.errors import LogError
from penstock.records.compaction.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.compaction.cleaner import Job, Throttle
    from penstock.log.interface import Rewriting, RewritingPlan, Sealed

_WORKER: Final = "penstock.broker.compaction.worker"
_ROOT: Final = str(Path(__file__).parents[3])
_END_SECONDS: Final = 10


class Cleaned(NamedTuple):
    """What became of one rewriting: what is sealed, None where nothing changes, and the tally."""

    sealed: Sealed | None
    tally: Tally


class Failure(NamedTuple):
    """Says what the process could not do."""

    error: Exception


class CleaningProcess:
    """Starts it when it is first needed. All methods but `kill` are for one thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def call(self, method: str, *arguments: object) -> Any:
        """Return what the worker's method of this name returns.

        Raises LogError, also where the process has died, OSError, and StoppedError once it was
        killed; RuntimeError where something is wrong with it.
        """
        process = self.start()
        assert process.stdin is not None, "it has pipes"
        assert process.stdout is not None, "it has pipes"
        try:
            pickle.dump((method, arguments), process.stdin)
            process.stdin.flush()
            answer = pickle.load(process.stdout)  # noqa: S301 (of our own process)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            self.end()
            if self._is_stopped:
                raise StoppedError from error
            raise LogError("the process that compacts has died") from error
        if isinstance(answer, Failure):
            raise answer.error
        return answer

    def start(self) -> subprocess.Popen[bytes]:
        """Return it, and have it there for what comes next. Raises OSError and StoppedError."""
        return self._process or self._start()

    def end(self) -> None:
        """Have it end, and wait for that."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.communicate(timeout=_END_SECONDS)

    def kill(self) -> None:
        """Stop it in the middle of its work, and start none any more."""
        self._is_stopped = True
        if self._process is not None:
            self._process.kill()

    @property
    def number(self) -> int | None:
        """The operating system's number of the process, where it is running."""
        return None if self._process is None else self._process.pid

    def _start(self) -> subprocess.Popen[bytes]:
        paths = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(  # noqa: S603 (our own command)
            [sys.executable, "-P", "-m", _WORKER, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            process_group=0,  # What a terminal sends to the broker is for the broker.
        )
        if self._is_stopped:
            self.end()
            raise StoppedError
        return self._process


class RemoteCleaner:
    """Does in a process what `Cleaner` does in a thread."""

    def __init__(
        self,
        process: CleaningProcess,
        job: Job,
        plans: Sequence[RewritingPlan],
        bytes_per_second: int,
    ) -> None:
        self._process = process
        self._rewritings = list(job.rewritings)
        self.tally = Tally()
        process.call("begin", job._replace(rewritings=()), plans, bytes_per_second)

    def map_keys(self) -> int:
        """Do as `Cleaner.map_keys`."""
        return int(self._process.call("map_keys"))

    def clean(self, rewriting: Rewriting) -> bool:
        """Do as `Cleaner.clean`."""
        cleaned: Cleaned = self._process.call("clean", self._rewritings.index(rewriting))
        self.tally = cleaned.tally
        if cleaned.sealed is None:
            return False
        rewriting.take(cleaned.sealed)
        return True

    def look_over(self, rewriting: Rewriting) -> bytes:
        """Do as `Cleaner.look_over`."""
        found: bytes = self._process.call("look_over", self._rewritings.index(rewriting))
        return found


def cleaner_of(job: Job, throttle: Throttle, process: CleaningProcess) -> Cleaner | RemoteCleaner:
    """Return what does a job: in this process where it is small, for to start one takes longer.

    Where that turns out to be too large for this process, it is done again once another one runs.
    """
    plans = [plan for each in job.rewritings if (plan := each.plan()) is not None]
    size = sum(each.source_bytes for each in job.rewritings)
    is_small = size < COMPACTED_IN_THREAD_BYTES and not process.is_running
    if len(plans) < len(job.rewritings):
        return Cleaner(job, throttle, INFLATED_BATCH_BYTES)
    if is_small:
        return Cleaner(job, throttle, COMPACTED_IN_THREAD_INFLATED_BYTES)
    return RemoteCleaner(process, job, plans, throttle.bytes_per_second)
