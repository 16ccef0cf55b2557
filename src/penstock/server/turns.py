"""Who goes on in which pass of the event loop, so that no connection keeps it from the others.

One pass gives its time to two kinds of work, each with a share of its own. What has just arrived is
served first: at once while its share lasts, else in the next pass. A connection that is not done
after its turn goes behind the others that are not; they go on in rotation. So a client that sends
one request waits for a share or two, however much others have sent.

Of what has arrived, those come first that have used little time of late: a request that takes a
millisecond, as a large read does, is a share of its own, and a hundred connections with one each
are a tenth of a second. So are a hundred that one client opens for a request each. Before all come
those of which that is known, for they asked a moment ago: a thousand connections that were quiet
until they ask all at once have used nothing either.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from time import perf_counter
from typing import Final, Protocol

from penstock import limits
from penstock.passes import NextPass

_SHARE_SECONDS: Final = limits.TURN_MICROSECONDS / 1_000_000
_NOTICED_SECONDS_LEFT: Final = _SHARE_SECONDS * 7 / 8
"""Below it, it is worth an entry in the event loop to begin a new pass."""

_LITTLE_SECONDS: Final = 0.002
_FORGOTTEN_A_SECOND: Final = 0.1
"""Who uses no more than this part of the time has used little."""
_REMEMBERED_SECONDS: Final = 1.0
"""At most: whoever is quiet for ten seconds has used little."""
_KNOWN_SECONDS: Final = 1.0
"""How long it is known of a worker that it uses little, from its last turn on."""
_UNKNOWN_LEAST: Final = _SHARE_SECONDS / 4
"""The share of those of which it is not known, where the others take all of theirs."""
_NEW_SECONDS: Final = 1.0
"""How long a connection is new."""
_LITTLE_BY_NEW_SECONDS: Final = 0.05
"""A program may open a few dozen connections as it starts."""
_CROWD: Final = 16
"""Workers, of which each has a small request."""


class Used:
    """How much time has been used of late, in seconds: by one worker, or by some together."""

    __slots__ = ("_at", "_seconds")

    def __init__(self) -> None:
        self._seconds = 0.0
        self._at = perf_counter()

    def add(self, began: float, seconds: float) -> None:
        """Somebody began at this time and took so long."""
        left = self._seconds - (began - self._at) * _FORGOTTEN_A_SECOND
        self._seconds = min(seconds + max(0, left), _REMEMBERED_SECONDS)
        self._at = began

    def is_little(self, little: float = _LITTLE_SECONDS) -> bool:
        forgotten = (perf_counter() - self._at) * _FORGOTTEN_A_SECOND
        return self._seconds - forgotten < little

    def is_known(self) -> bool:
        """Whether that is of what was done a moment ago, or somebody is that new."""
        return perf_counter() - self._at < _KNOWN_SECONDS


class UsedByOne:
    """How much time one worker has used of late. What those of its address used while they were
    new counts too while it is new: else one client had used nothing with each new connection.
    """

    __slots__ = ("_by_new", "_new_until", "_own")

    def __init__(self, by_new: Used | None = None) -> None:
        self._own = Used()
        self._by_new = by_new
        self._new_until = perf_counter() + _NEW_SECONDS

    def add(self, began: float, seconds: float) -> None:
        """It began at this time and took so long."""
        self._own.add(began, seconds)
        if self._by_new is not None:
            if began < self._new_until:
                self._by_new.add(began, seconds)
            else:
                self._by_new = None

    def is_little(self) -> bool:
        is_little = self._own.is_little()
        if is_little and self._by_new is not None and perf_counter() < self._new_until:
            return self._by_new.is_little(_LITTLE_BY_NEW_SECONDS)
        return is_little

    def is_known(self) -> bool:
        return self._own.is_known()


class Newcomers:
    """What the connections of each address used while they were new."""

    def __init__(self) -> None:
        self._used: OrderedDict[str, Used] = OrderedDict()

    def one_more(self, address: str) -> UsedByOne:
        """Return what a new connection of an address has used."""
        used = self._used.get(address)
        if used is None:
            used = self._used[address] = Used()
            if len(self._used) > limits.ADDRESSES_REMEMBERED:
                self._used.popitem(last=False)
        self._used.move_to_end(address)
        return UsedByOne(used)


class Turn:
    """What one worker may do before the others: so many steps, and so long."""

    __slots__ = ("_steps", "_until")

    def __init__(self, steps: int, until: float) -> None:
        self._steps = steps
        self._until = until

    def is_over(self) -> bool:
        """Whether it is for others to go on; asked after each step, so that one is always done."""
        self._steps -= 1
        return self._steps <= 0 or perf_counter() >= self._until


class Worker(Protocol):
    """One connection, as far as its turns are concerned."""

    in_line: bool
    """Whether it waits for a turn or has it; kept by `Turns`."""
    used: UsedByOne
    """Kept by `Turns`."""

    def take_turn(self, turn: Turn) -> bool:
        """Go on until there is nothing to do or the turn is over; return whether work is left."""


class Turns:
    """The turns of all connections of one server."""

    def __init__(self) -> None:
        self._arrived: deque[Worker] = deque()
        """Those that are known to use little."""
        self._arrived_unknown: deque[Worker] = deque()
        """Those that have used little of late, for they asked nothing."""
        self._arrived_heavy: deque[Worker] = deque()
        """Those that have used more."""
        self._lines = (self._arrived, self._arrived_unknown, self._arrived_heavy)
        self._left_over: deque[Worker] = deque()
        self._rotation_is_first = False
        self._seconds_left = _SHARE_SECONDS
        self._next_pass = NextPass(self._pass)

    def is_crowded(self) -> bool:
        """Whether more have something new to do than have their turn in one pass."""
        return sum(map(len, self._lines)) > _CROWD

    def now(self, worker: Worker) -> None:
        """Give a turn to a worker that has something new to do, at once if that is fair."""
        if worker.in_line:
            return
        others_are_first = self._arrived or (
            (self._arrived_unknown or self._arrived_heavy)
            and self._line_of(worker) is not self._arrived
        )
        if others_are_first or self._seconds_left <= 0:
            self.soon(worker)
            return
        worker.in_line = True
        self._give(worker, limits.TURN_STEPS)
        if self._left_over or self._seconds_left < _NOTICED_SECONDS_LEFT:
            self._next_pass.ask()

    def soon(self, worker: Worker) -> None:
        """Give a turn to a worker in the next pass, for all that it gets to do by then."""
        if not worker.in_line:
            worker.in_line = True
            self._line_of(worker).append(worker)
            self._next_pass.ask()

    def _line_of(self, worker: Worker) -> deque[Worker]:
        if not worker.used.is_little():
            return self._arrived_heavy
        return self._arrived if worker.used.is_known() else self._arrived_unknown

    def _pass(self) -> None:
        if not (any(self._lines) or self._left_over):
            self._seconds_left = _SHARE_SECONDS
            return
        in_rotation = len(self._left_over)
        self._seconds_left = _SHARE_SECONDS
        self._give_arrived(self._arrived)
        known_left, self._seconds_left = self._seconds_left, max(self._seconds_left, _UNKNOWN_LEAST)
        self._give_arrived(self._arrived_unknown)
        arrivals_left = min(known_left, self._seconds_left)
        self._seconds_left = _SHARE_SECONDS
        # One step may be longer than a share: of these two lines each begins in every other pass.
        self._rotation_is_first = not self._rotation_is_first
        if self._rotation_is_first:
            self._give_left_over(in_rotation)
            self._give_arrived(self._arrived_heavy)
        else:
            self._give_arrived(self._arrived_heavy)
            self._give_left_over(in_rotation)
        self._seconds_left = arrivals_left
        waiting = any(self._lines) or self._left_over
        if waiting or arrivals_left < _NOTICED_SECONDS_LEFT:
            self._next_pass.ask()

    def _give_arrived(self, line: deque[Worker]) -> None:
        while line and self._seconds_left > 0:
            worker = line.popleft()
            # Few steps where others wait: the next one may have a single request.
            self._give(worker, limits.FIRST_TURN_STEPS if line else limits.TURN_STEPS)

    def _give_left_over(self, count: int) -> None:
        while count and self._seconds_left > 0:
            count -= 1
            self._give(self._left_over.popleft(), limits.TURN_STEPS)

    def _give(self, worker: Worker, steps: int) -> None:
        began = perf_counter()
        if worker.take_turn(Turn(steps, began + self._seconds_left)):
            self._left_over.append(worker)
        else:
            worker.in_line = False
        took = perf_counter() - began
        worker.used.add(began, took)
        self._seconds_left -= took
