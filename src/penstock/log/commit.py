"""Group commit: many appends wait for one flush, and the flush runs off the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.log.checkpoint import Checkpoint, write_checkpoint
from penstock.log.errors import LogClosedError, LogError, LogFailedError
from penstock.log.interface import durable_already
from penstock.log.reading import Readers

if TYPE_CHECKING:
    from penstock.log.files import File, FileSystem

logger = logging.getLogger(__name__)


class Flusher:
    """The threads of one node that wait for the disk on behalf of all its logs.

    They do little but wait, and file systems join what several of them ask for at a time.
    """

    def __init__(self, threads: int = 16) -> None:
        assert threads > 0, "a flush needs a thread"
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="flush")
        self.readers = Readers()

    def submit(self, job: Callable[[], None]) -> Future[None]:
        return self._pool.submit(job)

    def close(self) -> None:
        """Return when all jobs are done. The logs are closed before."""
        self._pool.shutdown()
        self.readers.close()


@dataclass(slots=True)
class Round:
    """What one flush makes durable. It is put together on the loop and run in a thread."""

    files: FileSystem
    directory: Path
    offset: int
    """Everything below is durable once the round has run."""

    stored_bytes: int
    """How many bytes the log had stored by then."""

    active: File | None
    sealed: list[File] = field(default_factory=list)
    """Full segments: the round owns these files and closes them."""

    directories: list[Path] = field(default_factory=list)
    """Directories with names that aren't durable yet."""

    indexes: list[Path] = field(default_factory=list)
    """Those of the full segments: nobody will look at them again at the next start."""

    checkpoint: Checkpoint | None = None

    def run(self) -> None:
        """Flush, and write the checkpoint after what it speaks for. Raises OSError."""
        for file in self.sealed:
            file.fdatasync()
            file.close()
        if self.active is not None:
            self.active.fdatasync()
        for directory in self.directories:
            self.files.sync_directory(directory)
        for path in self.indexes:
            with closing(self.files.open(path, write=True)) as index:
                index.fdatasync()
        if self.checkpoint is not None:
            write_checkpoint(self.files, self.directory, self.checkpoint)


class GroupCommit:
    """Runs the rounds of one log one after the other; what comes during one joins the next."""

    def __init__(
        self,
        name: str,
        flusher: Flusher,
        begin: Callable[[], Round],
        flushed_offset: int,
        interval_seconds: float,
    ) -> None:
        self._name = name
        self._flusher = flusher
        self._begin = begin
        self._interval_seconds = interval_seconds
        self._began_at = -interval_seconds
        self._timer: asyncio.TimerHandle | None = None
        self.advanced: Callable[[], None] = _ignore
        """Called once a round, when `flushed_offset` has moved."""
        self.flushed_offset = flushed_offset
        self.flushed_bytes = 0
        """Of what was stored since the log was opened, all that is durable."""
        self.failure: LogError | None = None
        self._running: tuple[Round, Future[None]] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        """Of the running round."""
        self._next_waiters: list[asyncio.Future[None]] = []
        self._is_asked = False

    def reach(self, offset: int) -> asyncio.Future[None]:
        """Done when everything up to and with `offset` is durable; fails with LogError."""
        if offset < self.flushed_offset:
            return durable_already()
        if self._running is not None and offset < self._running[0].offset:
            return self._join(self._waiters)
        return self.whole_round()

    def whole_round(self) -> asyncio.Future[None]:
        """Done when a round that has yet to begin is over; fails with LogError."""
        self.ask()
        return self._join(self._next_waiters)

    def ask(self) -> None:
        """Have a round begin, once what the loop is about to do now has been done as well."""
        if not self._is_asked and self.failure is None:
            self._is_asked = True
            if self._running is None:
                asyncio.get_running_loop().call_soon(self._start)

    def ask_soon(self) -> None:
        """Have a round begin for what nobody waits for: at once, but not more often than each
        interval.
        """
        if self._is_asked or self._timer is not None or self.failure is not None:
            return
        loop = asyncio.get_running_loop()
        pause = self._began_at + self._interval_seconds - loop.time()
        if pause <= 0:
            self.ask()
        else:
            self._timer = loop.call_later(pause, self._ask_now)

    def _ask_now(self) -> None:
        self._timer = None
        self.ask()

    def fail(self, failure: LogError) -> None:
        """Let all waiters, and all to come, have `failure`."""
        self.failure = self.failure or failure
        waiters = self._waiters + self._next_waiters
        self._waiters, self._next_waiters = [], []
        for future in waiters:
            if not future.done():
                future.set_exception(self.failure)

    def settle(self) -> None:
        """Block until no round runs; its outcome is dealt with, and no other one begins."""
        if self._running is not None:
            wait([self._running[1]])
            self._conclude(*self._running)
        assert self._running is None, "nothing uses the files any more"

    async def idle(self) -> None:
        """Return when no round runs; none begins any more once `close` was called."""
        if self._running is not None:
            await asyncio.wait([asyncio.wrap_future(self._running[1])])

    @property
    def is_idle(self) -> bool:
        return self._running is None

    def run_now(self) -> None:
        """Run a round and block until it is over. Raises LogError."""
        self._is_asked = True
        self._begin_next()
        self.settle()
        if self.failure is not None:
            raise self.failure

    def _join(self, waiters: list[asyncio.Future[None]]) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        if self.failure is not None:
            future.set_exception(self.failure)
        else:
            waiters.append(future)
        return future

    def _start(self) -> None:
        """Begin the next round, if there is one to begin, and have its end reported to the loop."""
        self._begin_next()
        if self._running is None:
            return
        round_, future = self._running
        loop = asyncio.get_running_loop()
        self._began_at = loop.time()
        self._drop_timer()

        def report(done: Future[None]) -> None:
            with suppress(RuntimeError):  # The loop is closed: there are no waiters any more.
                loop.call_soon_threadsafe(self._finish, round_, done)

        future.add_done_callback(report)

    def _begin_next(self) -> None:
        if self._running is not None or self.failure is not None or not self._is_asked:
            return
        self._is_asked = False
        assert not self._waiters, "those of the last round have its outcome"
        try:
            round_ = self._begin()
            self._running = (round_, self._flusher.submit(round_.run))
        except Exception as error:  # Whatever it is, the waiters have to know.
            self._fail_flush(error)
            return
        self._waiters, self._next_waiters = self._next_waiters, []

    def _finish(self, round_: Round, done: Future[None]) -> None:
        """The loop has heard of a round's end."""
        if self._running is None or self._running[1] is not done:
            return  # Whoever closed the log has settled this round already.
        self._conclude(round_, done)
        if self._is_asked:
            self._start()

    def _conclude(self, round_: Round, done: Future[None]) -> None:
        assert done.done(), "a round is judged by its outcome"
        self._running = None
        error = done.exception()
        if error is not None:
            self._fail_flush(error)
            return
        assert round_.offset >= self.flushed_offset, "what is durable stays so"
        has_advanced = round_.offset > self.flushed_offset
        self.flushed_offset, self.flushed_bytes = round_.offset, round_.stored_bytes
        for future in self._waiters:
            if not future.done():
                future.set_result(None)
        self._waiters = []
        if has_advanced:
            self.advanced()

    def _fail_flush(self, error: BaseException) -> None:
        if isinstance(self.failure, LogClosedError):
            return  # Abandoned meanwhile: nobody is waiting for what it was to make durable.
        logger.error("%s: closed for writing: a flush failed: %s", self._name, error)
        failure = LogFailedError(f"{self._name}: a flush failed: {error}")
        failure.__cause__ = error
        self.fail(failure)

    def close(self) -> None:
        """Turn away all waiters, and all to come."""
        self._drop_timer()
        self.fail(LogClosedError("the log is closed"))

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _ignore() -> None:
    """Nobody wants to know."""
