"""The one way to start a task: with a name, kept from the collector, its failure reported.

And the way to do without one, where a coroutine ends in its first step.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast
from weakref import WeakSet

from penstock.going_on import GoingOn, going_on

ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)


class Ended(NamedTuple, Generic[ResultT]):
    """A coroutine that ended in its first step, and what it returned."""

    result: ResultT


class Rest(Generic[ResultT]):
    """What is left of a coroutine after its first step.

    Where nobody comes to await it, it is closed, and what it waits for cancelled, as by a task.
    """

    __slots__ = ("_awaited", "_work")

    def __init__(self, work: Coroutine[Any, Any, ResultT], awaited: Any) -> None:
        self._work = work
        self._awaited = awaited

    @property
    def awaited(self) -> Any | None:
        """What it waits for, where no task is needed for that; None where one is."""
        awaited = self._awaited
        return None if awaited is None or asyncio.isfuture(awaited) else awaited

    def go_on(self) -> Ended[ResultT] | Rest[ResultT]:
        """Do the next step as `begin` does the first one: what it waited for has happened.

        Raises what the step raises.
        """
        self._awaited = None
        return begin(self._work)

    def close(self) -> None:
        """End it where it waits."""
        self._awaited = None
        self._work.close()

    def __await__(self) -> Generator[Any, Any, ResultT]:
        pause = self.awaited
        if pause is None:
            rest, self._awaited = _steps(self._work, self._awaited), None
            return (yield from rest)
        self._awaited = None
        future = asyncio.get_running_loop().create_future()
        pause.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        try:
            yield from future
        except BaseException:
            self._work.close()
            raise
        return (yield from self._work.__await__())

    def __del__(self) -> None:
        if not asyncio.isfuture(self._awaited):
            return
        if self._awaited.cancel():
            self._awaited.add_done_callback(_report_unheard)
        elif not self._awaited.cancelled():
            self._awaited.exception()  # Whoever asked was to be told, and has left.


class _OfThread(threading.local):
    """What is one event loop's own: there may be others, each in its thread.

    `in_first_step`: whether the running code is one; a task that runs meanwhile is not its own.
    """

    def __init__(self) -> None:
        self.in_first_step = False
        self.uninterrupted: WeakSet[asyncio.Task[None]] = WeakSet()


_of_thread: Final = _OfThread()


def begin(work: Coroutine[Any, Any, ResultT]) -> Ended[ResultT] | Rest[ResultT]:
    """Do a coroutine's first step at once; return its end, or the rest to be awaited.

    The first step runs in no task, so `asyncio.timeout` and task groups have no place before
    `in_task`. Raises what the step raises.
    """
    outer, _of_thread.in_first_step = _of_thread.in_first_step, True
    try:
        awaited = work.send(None)
    except StopIteration as end:
        return Ended(cast("ResultT", end.value))
    finally:
        _of_thread.in_first_step = outer
    return Rest(work, awaited)


def is_first_step() -> bool:
    """Whether the running code is in no task, as in a coroutine that was begun."""
    return _of_thread.in_first_step


async def in_task() -> None:
    """Return when the caller runs in a task of its own: at once, but for a first step."""
    if _of_thread.in_first_step:
        await asyncio.sleep(0)


async def within(seconds: float, work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Await something that mostly is there at once. Raises TimeoutError."""
    begun = begin(work)
    if not isinstance(begun, Ended):
        await in_task()
        async with asyncio.timeout(seconds):
            begun = Ended(await begun)
    return begun.result


def _steps(work: Coroutine[Any, Any, ResultT], awaited: Any) -> Generator[Any, Any, ResultT]:
    tasks = going_on()
    try:
        while True:
            try:
                yield awaited
                if (turn := tasks.turn()) is not None:
                    yield from turn
            except GeneratorExit as error:
                awaited = work.throw(error)
            except BaseException as error:
                awaited = tasks.step(work, (yield from _outcome_in_line(tasks, error)))
            else:
                awaited = tasks.step(work)
    except StopIteration as end:
        return cast("ResultT", end.value)
    finally:
        del awaited  # It may know what was raised, which knows this frame.


def _outcome_in_line(tasks: GoingOn, error: BaseException) -> Generator[Any, Any, BaseException]:
    """Return what to go on with when its turn has come, for thousands may fail together.

    Who is cancelled meanwhile goes on with that, at once.
    """
    if (turn := tasks.turn()) is not None:
        try:
            yield from turn
        except asyncio.CancelledError as later:
            return later
    return error


@coroutine
def in_turns(work: Coroutine[Any, Any, ResultT]) -> Generator[Any, Any, ResultT]:
    """Return what `work` returns, each step of which waits for its turn: where what wakes one task
    may wake thousands. Raises what it raises.
    """
    tasks = going_on()
    try:
        if (turn := tasks.turn()) is not None:
            yield from turn
        rest = _steps(work, tasks.step(work))
    except StopIteration as end:
        return cast("ResultT", end.value)
    except BaseException:
        work.close()  # It may not have begun.
        raise
    return (yield from rest)


class Tasks:
    """The running tasks of one owner."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run `work` beside the caller. An exception in it is logged with its traceback."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def cancel(self) -> None:
        """Ask every running task to end."""
        for task in tuple(self._running):
            task.cancel()

    async def ended(self) -> None:
        """Return when no task is running."""
        while self._running:
            await asyncio.wait(self._running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            _log_failure(task.get_name(), task.exception())


def _report_unheard(future: asyncio.Future[Any]) -> None:
    """Log how it failed, unless by being cancelled, which several together end with an error by."""
    if not future.cancelled() and isinstance(error := future.exception(), Exception):
        _log_failure("that nobody awaits any more", error)


def _log_failure(name: str, error: BaseException | None) -> None:
    if error is not None:
        logger.error("the task %s failed", name, exc_info=error)


async def uninterrupted(
    work: Coroutine[Any, Any, ResultT], name: str, *, refusals: type[Exception]
) -> ResultT:
    """Return what `work` returns, which goes on to its end even where the caller is cancelled.

    For what is done in steps of which none may be missing. The first one is done at once: what the
    caller has just found to be free is still so. Raises what `work` raises. Where nobody is left to
    hear that, it is logged, unless it is one of `refusals`, by which nothing was done.
    """
    begun = begin(work)
    if isinstance(begun, Ended):
        return cast("ResultT", begun.result)
    outcome: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
    start_uninterrupted(_conclude(begun, outcome, refusals), name)
    try:
        return await outcome
    except (asyncio.CancelledError, GeneratorExit):
        # The caller may leave between the end and its hearing of it.
        if not outcome.cancel() and not outcome.cancelled():
            error = outcome.exception()
            if not isinstance(error, refusals):
                _log_failure(name, error)
        raise


async def _conclude(
    rest: Rest[ResultT], outcome: asyncio.Future[ResultT], refusals: type[Exception]
) -> None:
    try:
        result = await rest
    except Exception as error:
        if not outcome.done():
            outcome.set_exception(error)
        elif not isinstance(error, refusals):
            raise
    else:
        if not outcome.done():
            outcome.set_result(result)


def start_uninterrupted(work: Coroutine[Any, Any, None], name: str) -> None:
    """Run `work` beside the caller, to its end: the node does not close before."""
    _of_thread.uninterrupted.add(Tasks().start(work, name))


async def all_uninterrupted() -> None:
    """Return when nothing is left of what goes on although its callers are gone."""
    loop = asyncio.get_running_loop()
    while left := [
        task for task in _of_thread.uninterrupted if task.get_loop() is loop and not task.done()
    ]:
        await asyncio.wait(left)
