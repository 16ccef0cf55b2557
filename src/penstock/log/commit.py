"""Group commit: many appends wait for one write or one flush, and both run off the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.log.errors import LogClosedError, LogError, LogFailedError, LogWriteError, reason_of
from penstock.log.interface import Outcome
from penstock.log.reading import Readers
from penstock.log.threads import Job, News, Threads
from penstock.log.waiters import Waiters
from penstock.parties import ASKING, NOBODY

if TYPE_CHECKING:
    from penstock.log.appender import Appender
    from penstock.log.rounds import Round

logger = logging.getLogger(__name__)

_COLLECTED_SECONDS: Final = 0.003
"""How long batches that follow one another are collected: a change of threads, there and back,
costs more than several small appends do, and the loop goes round every millisecond."""


class Flusher:
    """The threads of one node that wait for the disk on behalf of all its logs.

    They do little but wait, and file systems join what several of them ask for at a time. Writes
    have threads of their own, so that none waits for the flush of another log.
    """

    def __init__(self, threads: int = 16) -> None:
        self.flushing = Threads(threads, "flush")
        self.writing = Threads(threads, "write")
        self.readers = Readers(lambda: self.news)
        self._news: News | None = None

    @property
    def news(self) -> News:
        """What the threads have to say to the running event loop."""
        loop = asyncio.get_running_loop()
        if self._news is None or self._news.loop is not loop:
            self._news = News(loop)
        return self._news

    async def run(self, work: Callable[[], None]) -> None:
        """Return when a thread has done something. Raises what it raises."""
        await self.flushing.done(self.news, work)

    def close(self) -> None:
        """Return when all jobs are done. The logs are closed before."""
        self.writing.close()
        self.flushing.close()
        self.readers.close()


class GroupCommit:
    """Has what stands in line written and flushed, for all that wait for it together.

    The rounds of one log run one after the other; what comes during one joins the next. A round
    begins with the write of what stands in line, so that a flush costs one change of threads.
    Whoever waits for the write alone does not wait for a flush that runs.
    """

    def __init__(
        self,
        name: str,
        flusher: Flusher,
        appender: Appender,
        begin: Callable[[], Round],
        interval_seconds: float,
    ) -> None:
        self._name = name
        self._flusher = flusher
        self._appender = appender
        self._begin = begin
        self._interval_seconds = interval_seconds
        self.advanced: Callable[[], None] = _ignore
        """Called when `flushed_offset` or the appender's `written_offset` has moved."""
        self.cut: Callable[[int], None] = _ignore_offset
        """Called with the end of the log where a write failed and was taken back."""
        self.concluded: Callable[[Round], None] = _ignore_round
        """Called with each round that made something durable."""
        self.flushed_offset = appender.end_offset
        self.flushed_bytes = 0
        """Of what was written since the log was opened, all that is durable."""
        self.failure: LogError | None = None
        self._writing: Job | None = None
        self._running: tuple[Round, Job] | None = None
        self._running_offset = 0
        """What stood in line below it when the running round began; it may get further."""
        self._written = Waiters()
        self._flushed = Waiters()
        self._whole: list[asyncio.Future[None]] = []
        """Waiters for all that the running round does."""
        self._next_whole: list[asyncio.Future[None]] = []
        self._is_asked = False
        self._asked_by = NOBODY
        """Who had something written or flushed last: it is done in their turn."""
        self._has_turn = False
        self._seen_offset = 0
        """What stood in line below it when `_take_turn` was called last, or became due."""
        self._collected_until = 0.0
        self._idle: asyncio.Future[None] | None = None
        """Whoever waits until nothing is written or flushed."""
        self._began_at = -interval_seconds
        self._timer: asyncio.TimerHandle | None = None

    def write(self) -> None:
        """Have what was put in line written, with what the loop's next turns add to it."""
        self._asked_by = ASKING.get() or self._asked_by
        if not self._has_turn and self.failure is None:
            self._has_turn = True
            loop = asyncio.get_running_loop()
            self._seen_offset = self._appender.end_offset
            self._collected_until = loop.time() + _COLLECTED_SECONDS
            loop.call_soon(self._take_turn)

    def written(self, offset: int) -> Outcome:
        """Done when everything up to and with `offset` is written; fails with LogError."""
        if offset < self._appender.written_offset:
            return Outcome.known()
        return self._written.join(self._shared(offset), self.failure)

    def reach(self, offset: int) -> Outcome:
        """Done when everything up to and with `offset` is durable; fails with LogError."""
        if offset < self.flushed_offset:
            return Outcome.known()
        if self._running is None or offset >= self._running_offset:
            self.ask()
        return self._flushed.join(self._shared(offset), self.failure)

    def whole_round(self) -> asyncio.Future[None]:
        """Done when a round that has yet to begin is over, checkpoint and all; fails with LogError,
        also where a write failed and the round did not come to its end.
        """
        self.ask()
        future = asyncio.get_running_loop().create_future()
        if self.failure is not None:
            future.set_exception(self.failure)
        else:
            self._next_whole.append(future)
        return future

    def ask(self) -> None:
        """Have a round begin, once what the loop is about to do now has been done as well."""
        self._is_asked = True
        self.write()

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

    def settle(self) -> None:
        """Block until nothing is written or flushed; the outcome is dealt with, and no more is."""
        if self._writing is not None:
            self._writing.wait()
            self._conclude_write(self._writing)
        if self._running is not None:
            self._running[1].wait()
            self._tell(self._conclude(*self._running))
        assert self._writing is None, "nothing is written any more"
        assert self._running is None, "nothing uses the files any more"

    async def idle(self) -> None:
        """Return when nothing is written or flushed; nothing begins once `close` was called."""
        if not self.is_idle:
            self._idle = self._idle or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)

    @property
    def is_idle(self) -> bool:
        return self._running is None and self._writing is None

    def run_now(self) -> None:
        """Run a round and block until it is over. Raises LogError."""
        self._is_asked = True
        self._appender.hand_over()
        self._begin_next(None)
        running = self._running
        self.settle()
        if self.failure is not None:
            raise self.failure
        error = None if running is None else running[1].error
        if error is not None:
            raise error

    def fail(self, failure: LogError) -> None:
        """Let all waiters, and all to come, have `failure`."""
        self.failure = self.failure or failure
        self._written.fail(self.failure)
        self._flushed.fail(self.failure)
        _settle_all(self._whole + self._next_whole, self.failure)
        self._whole, self._next_whole = [], []

    def close(self) -> None:
        """Turn away all waiters, and all to come."""
        self._drop_timer()
        self.fail(LogClosedError("the log is closed"))

    def _shared(self, offset: int) -> int:
        """Return the offset to wait for: of what is handed over together, all or none succeeds."""
        return min(offset, self._appender.handed_over_offset)

    def _take_turn(self) -> None:
        """Hand over to the threads what has come, once no more comes right behind it."""
        if self._appender.end_offset != self._seen_offset:
            loop = asyncio.get_running_loop()
            if loop.time() < self._collected_until:
                self._seen_offset = self._appender.end_offset
                loop.call_soon(self._take_turn)
                return
        self._has_turn = False
        self._appender.hand_over()
        if self.failure is not None:
            return
        if self._running is None:
            self._is_asked = self._is_asked or self._may_run_at_once
            if self._is_asked:
                self._begin_next(self._flusher.news)
                return
        # A round writes too, so that what nobody waits for alone is left to the next one.
        is_alone = bool(self._written) or self._running is None
        if is_alone and self._appender.writer.queue and self._writing is None:
            then = partial(self._flusher.news.add, self._finish_write)
            self._writing = self._flusher.writing.do(
                self._appender.writer.write, then, self._asked_by
            )

    @property
    def _may_run_at_once(self) -> bool:
        """Whether a round takes no longer than to have a thread begin one, so that the loop runs
        it, also where nobody waits for a flush.
        """
        return self._writing is None and self._appender.writer.is_quick

    def _finish_write(self, done: Job) -> None:
        """The loop has heard of a write's end."""
        if self._writing is done:  # Whoever closed the log has settled it already.
            self._conclude_write(done)
            self._go_on()

    def _finish(self, done: Job) -> None:
        """The loop has heard of a round's end."""
        if self._running is not None and self._running[1] is done:
            has_advanced = self._conclude(*self._running)
            if done.error is None and not self._has_turn:
                # First, for what came meanwhile: the disk works while the others are served.
                self._begin_next(self._flusher.news)
            self._tell(has_advanced)
            self._go_on()

    def _go_on(self) -> None:
        if self._is_asked or self._appender.writer.queue:
            self.write()
        if self._idle is not None and self.is_idle:
            self._idle.set_result(None)
            self._idle = None

    def _begin_next(self, news: News | None) -> None:
        """Begin a round, of which there is `news` unless somebody blocks until it is over."""
        if self._running is not None or self.failure is not None or not self._is_asked:
            return
        self._is_asked = False
        self._drop_timer()
        try:
            round_ = self._begin()
            self._running_offset = self._appender.end_offset
            is_at_once = round_.checkpoint is None and news is not None and self._may_run_at_once
            job = Job(round_.run) if is_at_once else self._left_to_thread(round_, news)
        except Exception as error:  # Whatever it is, the waiters have to know.
            self._fail_flush(error)
            return
        self._running = (round_, job)
        self._whole, self._next_whole = self._next_whole, []
        if is_at_once:
            job.do()
            self._finish(job)

    def _left_to_thread(self, round_: Round, news: News | None) -> Job:
        then = None
        if news is not None:
            self._began_at = news.loop.time()
            then = partial(news.add, self._finish)
            if self._written:
                round_.on_written = partial(news.add, self._conclude_written)
        return self._flusher.flushing.do(round_.run, then, self._asked_by)

    def _conclude_write(self, done: Job) -> None:
        self._writing = None
        self._conclude_written()
        error = done.error
        if error is not None and not isinstance(error, OSError):
            self._fail_flush(error)

    def _conclude(self, round_: Round, done: Job) -> bool:
        """Take over what a round did; return whether it is more than was there before."""
        assert done.has_ended, "a round is judged by its outcome"
        self._running = None
        has_advanced = self._take_over()
        error = done.error
        if error is None:
            return self._conclude_durable(round_) or has_advanced
        if isinstance(error, LogWriteError):
            self._conclude_failed(round_, error)
        else:
            self._fail_flush(error)
        return has_advanced

    def _tell(self, has_advanced: bool) -> None:
        if has_advanced:
            self.advanced()  # First: whoever reads has more to do than whoever has written.
        self._flushed.reached(self.flushed_offset)

    def _conclude_written(self) -> None:
        if self._take_over():
            self.advanced()

    def _take_over(self) -> bool:
        """Take over what was written, and turn away those whose batches could not be.

        Returns whether there was anything.
        """
        before = self._appender.written_offset
        error = self._appender.settle()
        self._written.reached(self._appender.written_offset)
        if error is not None:
            end_offset = self._appender.end_offset
            failure = LogWriteError.of(error)
            self.cut(end_offset)
            self._written.fail(failure, end_offset)
            self._flushed.fail(failure, end_offset)
        return self._appender.written_offset > before

    def _conclude_failed(self, round_: Round, failure: LogWriteError) -> None:
        """Nothing was made durable, and nothing is lost: the next round may do it."""
        _settle_all(self._whole, failure)
        self._whole = []
        if (
            round_.unsynced is None
        ):  # Whoever still waits is not concerned by the write that failed.
            self._is_asked = self._is_asked or bool(self._flushed)
        else:
            self.concluded(round_)
            self._flushed.fail(failure)
            self.ask_soon()

    def _conclude_durable(self, round_: Round) -> bool:
        reached = round_.unsynced
        assert reached is not None, "a round that succeeded has made something durable"
        assert reached.end_offset >= self.flushed_offset, "what is durable stays so"
        has_advanced = reached.end_offset > self.flushed_offset
        self.flushed_offset, self.flushed_bytes = reached.end_offset, reached.written_bytes
        self.concluded(round_)
        if self._whole:
            error = round_.checkpoint_error
            _settle_all(self._whole, None if error is None else LogWriteError.of(error))
            self._whole = []
        if self.flushed_offset == self._appender.end_offset and not self._next_whole:
            self._is_asked = False  # The round got so far that nothing is left for another one.
        return has_advanced

    def _fail_flush(self, error: BaseException) -> None:
        if isinstance(self.failure, LogClosedError):
            return  # Abandoned meanwhile: nobody is waiting for what it was to make durable.
        logger.error("%s: closed for writing: a flush failed: %s", self._name, error)
        failure = LogFailedError(f"a flush failed: {reason_of(error)}")
        failure.__cause__ = error
        self.fail(failure)

    def _ask_now(self) -> None:
        self._timer = None
        self.ask()

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _settle_all(waiters: list[asyncio.Future[None]], failure: LogError | None) -> None:
    for future in waiters:
        if future.done():
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)


def _ignore() -> None:
    """Nobody wants to know."""


def _ignore_offset(offset: int) -> None:
    """Nobody remembers anything of what is there."""
    del offset


def _ignore_round(round_: Round) -> None:
    """Nothing hangs on it."""
    del round_
