"""The way of every request, whatever its protocol: its turn, its outcome, its place in the order.

Nothing else asks whether a handler's answer is there at once, waits for one future, or has to be
awaited. One that is there leaves in the same turn of the event loop. What many requests find to do
at the same time, because what they waited for is there, is done in turns (`penstock.server.turns`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from functools import partial
from types import CoroutineType
from typing import Any, NamedTuple, Protocol, TypeAlias

from penstock.parties import ASKING
from penstock.server.answers import Answers, Slot
from penstock.server.lanes import Lanes
from penstock.server.turns import Turn
from penstock.session import Awaited, Buffers, Deferred, Encoded, Request, Session
from penstock.tasks import Ended, Rest, Tasks, begin

AnyRequest: TypeAlias = Request[Any]
"""What the session made of a frame knows its own kind of reply; nobody here looks into one."""


class Owner(Protocol):
    """The connection, as its pipeline sees it."""

    def settled(self) -> None:
        """Answers that were owed have their places in the order now."""

    def work_came(self) -> None:
        """There is something for `Pipeline.go_on` to do."""

    def failed(self, error: Exception) -> None:
        """A request has no answer: the client's fault where it is a PeerError, else a bug."""


class Parked(NamedTuple):
    """A request that waits for its turn, with the place of its answer."""

    request: AnyRequest
    slot: Slot


Ready: TypeAlias = tuple[AnyRequest, Slot, Deferred[Any] | Rest[Any]]
"""A request that goes on, as what it waited for has happened, and the place of its answer."""


class Pipeline:
    """The requests of one connection, from whole frames to answers in their order."""

    __slots__ = (
        "_answers",
        "_awaited",
        "_lanes",
        "_may_begin",
        "_owner",
        "_paused",
        "_ready",
        "_session",
        "_tasks",
        "_waiting",
        "held_back",
        "name",
    )

    def __init__(self, session: Session, answers: Answers, owner: Owner, name: str) -> None:
        self._session = session
        self._answers = answers
        self._owner = owner
        self.name = name
        self._lanes: Lanes[Parked] = Lanes(session.conflicts)
        self._tasks = Tasks()
        self._awaited: Awaited | None = None
        """What those that began last wait for."""
        self._waiting: list[Ready] = []
        self._ready: deque[Ready] = deque()
        self._paused: dict[Slot, Rest[Any]] = {}
        """What waits for something to happen and needs no task for it."""
        self._may_begin = False
        self.held_back = False
        """Whether what is parked stays so, for the client does not take its answers."""

    def __bool__(self) -> bool:
        """Whether there are requests that `cancel` would end."""
        return bool(self._tasks or self._paused or self._lanes)

    def take(self, frame: memoryview) -> None:
        """Have one frame carried out, at once or in its turn. Called in a turn, after `go_on`.

        Raises what the session raises, and what a request is not answered for: PeerError where it
        is the client's fault.
        """
        request = self._session.receive(frame)
        if request is None:
            return
        lane = request.lane
        if lane is None or self._lanes.is_free(lane):
            self._begin(request, size=len(frame))
        else:
            slot = self._answers.reserve(len(frame) + request.held_bytes)
            self._lanes.park(lane, Parked(request, slot))

    @property
    def has_work(self) -> bool:
        """Whether `go_on` finds something to do."""
        return (self._may_begin and not self.held_back) or bool(self._ready)

    def go_on(self, turn: Turn) -> bool:
        """Give answers that are ready, and begin what was parked; return whether time is left."""
        ASKING.set(self.name)
        if self._ready and not self._finish_ready(turn):
            return False
        while self._may_begin and not self.held_back:
            self._begin_parked()
            if turn.is_over():
                return False
        return True

    def cancel(self) -> None:
        """End the requests that wait for something to happen, and drop those that did not begin.

        What is deferred ends by itself and is never cancelled.
        """
        self._lanes.clear()
        self._tasks.cancel()
        paused, self._paused = self._paused, {}
        for rest in paused.values():
            rest.close()
        self._answers.abandon()

    async def ended(self) -> None:
        """Return when no request runs that `cancel` would end."""
        await self._tasks.ended()

    def _begin(self, request: AnyRequest, slot: Slot | None = None, size: int = 0) -> None:
        """Begin a request: one that was parked has its slot, another one its frame's size.

        Raises as `take`.
        """
        parts: Encoded
        try:
            answer = request.begin()
            if isinstance(answer, CoroutineType):
                begun = begin(answer)
                if not isinstance(begun, Ended):
                    self._go_on_later(request, slot or self._reserve(request, size), begun)
                    return
                answer = begun.result
            if isinstance(answer, Deferred):
                if not answer.ready.done():
                    slot = slot or self._reserve(request, size)
                    self._await(answer.ready).append((request, slot, answer))
                    return
                answer = answer.result()
            parts = request.encode(answer)
        except asyncio.CancelledError:
            parts = None  # What it waited for was given up already.
        except Exception as error:
            parts = request.refuse(error)
        if isinstance(parts, CoroutineType):
            self._run_soon(request, slot or self._reserve(request, size), parts)
        elif slot is not None:
            self._settle(request, slot, parts)
        elif parts is not None:
            self._answers.add(parts)

    def _reserve(self, request: AnyRequest, size: int) -> Slot:
        if request.lane is not None:
            self._lanes.start(request.lane)
        return self._answers.reserve(size + request.held_bytes)

    def _await(self, awaited: Awaited) -> list[Ready]:
        """Return where a request waits; those that follow one another wait together."""
        if awaited is not self._awaited:
            self._awaited, self._waiting = awaited, []
            awaited.add_done_callback(partial(self._are_ready, self._waiting))
        return self._waiting

    def _are_ready(self, waiting: list[Ready], _awaited: object) -> None:
        self._ready.extend(waiting)
        self._awaited = None
        self._owner.work_came()

    def _finish_ready(self, turn: Turn) -> bool:
        """Give answers that are ready; return whether time is left."""
        ready, is_over = self._ready, False
        while ready and not is_over:
            self._finish(*ready.popleft())
            is_over = turn.is_over()
        self._answers.write_ready()
        self._owner.settled()
        return not is_over

    def _finish(self, request: AnyRequest, slot: Slot, answer: Deferred[Any] | Rest[Any]) -> None:
        parts: Encoded = None
        try:
            try:
                if isinstance(answer, Deferred):
                    reply = answer.result()
                else:
                    if self._paused.pop(slot, None) is None:
                        return  # It was cancelled meanwhile.
                    begun = answer.go_on()
                    if not isinstance(begun, Ended):
                        self._go_on_later(request, slot, begun)
                        return
                    reply = begun.result
                parts = request.encode(reply)
            except asyncio.CancelledError:
                parts = None  # What it waited for was given up already.
            except Exception as error:
                parts = request.refuse(error)
        except Exception as error:
            self._owner.failed(error)
        if isinstance(parts, CoroutineType):
            self._run_soon(request, slot, parts)
        else:
            self._place(request, slot, parts)

    def _go_on_later(self, request: AnyRequest, slot: Slot, rest: Rest[Any]) -> None:
        """Have a request go on when what it waits for has happened."""
        awaited = rest.awaited
        if awaited is None:
            self._run_soon(request, slot, _encoded(request, rest))
        else:
            self._paused[slot] = rest
            self._await(awaited).append((request, slot, rest))

    def _run_soon(
        self, request: AnyRequest, slot: Slot, work: Coroutine[Any, Any, Buffers | None]
    ) -> None:
        task = self._tasks.start(self._run(request, slot, work), self.name)
        # Nobody awaits it where the task is cancelled before its first step.
        task.add_done_callback(lambda _: work.close())

    async def _run(
        self, request: AnyRequest, slot: Slot, work: Coroutine[Any, Any, Buffers | None]
    ) -> None:
        parts: Buffers | None = None
        try:
            try:
                parts = await work
            except Exception as error:
                parts = request.refuse(error)
        except Exception as error:
            self._owner.failed(error)
        finally:
            # Where it was cancelled too: others may wait for its end.
            self._settle(request, slot, parts)
            if self._may_begin:
                self._owner.work_came()

    def _settle(self, request: AnyRequest, slot: Slot, parts: Buffers | None) -> None:
        self._place(request, slot, parts)
        self._answers.write_ready()
        self._owner.settled()

    def _place(self, request: AnyRequest, slot: Slot, parts: Buffers | None) -> None:
        self._answers.settle(slot, parts)
        lane = request.lane
        if lane is not None and self._lanes.end(lane):
            self._may_begin = True

    def _begin_parked(self) -> None:
        parked = self._lanes.next()
        if parked is None:
            self._may_begin = False
            return
        try:
            self._begin(*parked)
        except Exception as error:
            self._owner.failed(error)
            self._settle(*parked, None)


async def _encoded(request: AnyRequest, answer: Rest[Any]) -> Buffers | None:
    parts: Encoded = request.encode(await answer)
    return await parts if isinstance(parts, CoroutineType) else parts
