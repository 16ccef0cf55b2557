"""The way of every request, whatever its protocol: its turn, its outcome, its place in the order.

Nothing else asks whether a handler's answer is there at once, waits for one future, or has to be
awaited. One that is there leaves in the same turn of the event loop.
"""

from __future__ import annotations

from collections.abc import Coroutine
from types import CoroutineType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from penstock.server.answers import Answers, Slot
from penstock.server.lanes import Lanes
from penstock.session import Buffers, Deferred, Request, Session
from penstock.tasks import Tasks

AnyRequest: TypeAlias = Request[Any]
"""What the session made of a frame knows its own kind of reply; nobody here looks into one."""
Later: TypeAlias = Deferred[Any] | Coroutine[Any, Any, Any]
LATER: Final = (Deferred, CoroutineType)


class Owner(Protocol):
    """The connection, as its pipeline sees it."""

    def settled(self) -> None:
        """An answer that was owed has its place in the order now."""

    def failed(self, error: Exception) -> None:
        """A request has no answer: the client's fault where it is a PeerError, else a bug."""


class Parked(NamedTuple):
    """A request that waits for its turn, with the place of its answer."""

    request: AnyRequest
    slot: Slot


class Pipeline:
    """The requests of one connection, from whole frames to answers in their order."""

    __slots__ = ("_answers", "_beginning", "_lanes", "_name", "_owner", "_session", "_tasks")

    def __init__(self, session: Session, answers: Answers, owner: Owner, name: str) -> None:
        self._session = session
        self._answers = answers
        self._owner = owner
        self._name = name
        self._lanes: Lanes[Parked] = Lanes(session.conflicts)
        self._tasks = Tasks()
        self._beginning = False

    def __bool__(self) -> bool:
        """Whether there are requests that `cancel` would end."""
        return bool(self._tasks or self._lanes)

    def take(self, frame: memoryview) -> None:
        """Have one frame carried out, at once or in its turn.

        Raises what the session raises, and what a request is not answered for: PeerError where it
        is the client's fault.
        """
        request = self._session.receive(frame)
        if request is None:
            return
        if self._lanes.is_free(request.lane):
            self._begin(request, size=len(frame))
        else:
            slot = self._answers.reserve(len(frame))
            self._lanes.park(request.lane, Parked(request, slot))

    def cancel(self) -> None:
        """End the requests that wait for something to happen, and drop those that did not begin.

        What is deferred ends by itself and is never cancelled.
        """
        self._lanes.clear()
        self._tasks.cancel()

    async def ended(self) -> None:
        """Return when no request runs that `cancel` would end."""
        await self._tasks.ended()

    def _begin(self, request: AnyRequest, slot: Slot | None = None, size: int = 0) -> None:
        """Begin a request: one that was parked has its slot, another one its frame's size.

        Raises as `take`.
        """
        try:
            answer = request.begin()
            if isinstance(answer, Deferred) and answer.ready.done():
                answer = answer.result()
            if isinstance(answer, LATER):
                if slot is None:
                    self._lanes.start(request.lane)
                    slot = self._answers.reserve(size)
                self._wait_for(request, slot, answer)
                return
            parts = request.encode(answer)
        except Exception as error:
            parts = request.refuse(error)
        if slot is not None:
            self._settle(request, slot, parts)
        elif parts is not None:
            self._answers.add(parts)

    def _wait_for(self, request: AnyRequest, slot: Slot, answer: Later) -> None:
        if isinstance(answer, Deferred):
            answer.ready.add_done_callback(lambda _: self._finish(request, slot, answer))
        else:
            self._tasks.start(self._run(request, slot, answer), self._name)

    def _finish(self, request: AnyRequest, slot: Slot, answer: Deferred[Any]) -> None:
        parts: Buffers | None = None
        try:
            try:
                parts = request.encode(answer.result())
            except Exception as error:
                parts = request.refuse(error)
        except Exception as error:
            self._owner.failed(error)
        self._settle(request, slot, parts)

    async def _run(self, request: AnyRequest, slot: Slot, answer: Coroutine[Any, Any, Any]) -> None:
        parts: Buffers | None = None
        try:
            try:
                parts = request.encode(await answer)
            except Exception as error:
                parts = request.refuse(error)
        except Exception as error:
            self._owner.failed(error)
        finally:
            # Where it was cancelled too: others may wait for its end.
            self._settle(request, slot, parts)

    def _settle(self, request: AnyRequest, slot: Slot, parts: Buffers | None) -> None:
        self._answers.settle(slot, parts)
        self._owner.settled()
        if self._lanes.end(request.lane):
            self._begin_parked()

    def _begin_parked(self) -> None:
        if self._beginning:
            return  # One of those that begin below ended at once.
        self._beginning = True
        while (parked := self._lanes.next()) is not None:
            try:
                self._begin(*parked)
            except Exception as error:
                self._owner.failed(error)
                self._settle(*parked, None)
        self._beginning = False
