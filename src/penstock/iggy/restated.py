"""Messages as polls of older dialects were answered with them: the next who polls the same finds
them made.

Most of what such a poll costs is to read its batches and to lay their messages out anew.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.iggy.batches import in_form
from penstock.iggy.wire.batch import MessageForm
from penstock.limits import IGGY_RESTATED_KEPT_AT_FIRST_BYTES, IGGY_RESTATED_KEPT_BYTES
from penstock.memory import Holding
from penstock.session import in_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.topics.partition import Partition
    from penstock.iggy.polling import Polled, Wanted
    from penstock.memory import Memory
    from penstock.session import Part

_WORTH_KEEPING: Final = 16 * 1024
"""Bytes; what is less is made again as quickly as it is found."""

_REMEMBERED: Final = 64
"""Answers that are known to have been made, besides those that are kept."""

_Key: TypeAlias = tuple[int, tuple[int, int], MessageForm, int, int]


class Restated(NamedTuple):
    """The messages of one answer, in the form of its dialect; see Polled for the edition."""

    parts: Sequence[Part]
    messages: int
    last_offset: int
    edition: tuple[int, int]


def restate(polled: Polled, form: MessageForm) -> Restated:
    """Lay out anew what was polled. Raises what `in_form` raises."""
    parts = in_form(polled.cuts, form)
    return Restated(parts, polled.messages, polled.last_offset, polled.edition)


class RestatedPolls:
    """Those that were asked for last.

    Few are kept until something is asked for again that was not kept, and when what was kept was
    asked for by nobody: memory that is at hand makes the next answer in two thirds of the time.
    """

    def __init__(self, memory: Memory) -> None:
        self._restated: OrderedDict[_Key, Restated] = OrderedDict()
        self._found: set[_Key] = set()
        """Of those that are kept, the ones that were asked for again."""
        self._missed: OrderedDict[_Key, None] = OrderedDict()
        """What was made lately, and not kept."""
        self._are_shared = False
        """Whether the same was asked for by more than one."""
        self._held = Holding(memory.caches)
        memory.add_cache(self)

    def find(self, partition: Partition, wanted: Wanted, form: MessageForm) -> Restated | None:
        """Return what a poll of this form is answered with; None where that is yet to be made."""
        if form is MessageForm.BATCH or wanted.since_us:
            return None
        key = _key(partition, wanted, form)
        found = self._restated.get(key)
        if found is not None:
            self._restated.move_to_end(key)
            self._found.add(key)
        return found

    def keep(
        self, partition: Partition, wanted: Wanted, form: MessageForm, restated: Restated
    ) -> None:
        """Keep an answer; one that has less than was wanted may have more the next time."""
        size = in_memory(restated.parts)
        is_whole = restated.messages == wanted.messages and not wanted.since_us
        if restated.edition != partition.edition:
            return
        if not is_whole or not _WORTH_KEEPING <= size <= IGGY_RESTATED_KEPT_BYTES:
            return
        key = _key(partition, wanted, form)
        if key in self._missed:
            del self._missed[key]
            self._are_shared = True
        if size > self._bound:
            self._miss(key)
            return
        if key not in self._restated:
            self._restated[key] = restated
            self._held.grow(size)
        while self._held.size > self._bound:
            self._drop()

    @property
    def _bound(self) -> int:
        return IGGY_RESTATED_KEPT_BYTES if self._are_shared else IGGY_RESTATED_KEPT_AT_FIRST_BYTES

    def empty(self) -> None:
        """Drop all that was kept; see penstock.memory.Cache."""
        self._restated.clear()
        self._found.clear()
        self._held.set(0)

    def _drop(self) -> None:
        key, dropped = self._restated.popitem(last=False)
        self._held.grow(-in_memory(dropped.parts))
        if key in self._found:
            self._found.remove(key)
        else:
            self._are_shared = False
            self._miss(key)

    def _miss(self, key: _Key) -> None:
        self._missed[key] = None
        if len(self._missed) > _REMEMBERED:
            self._missed.popitem(last=False)


def _key(partition: Partition, wanted: Wanted, form: MessageForm) -> _Key:
    start = max(wanted.start, partition.start_offset)
    return partition.id, partition.edition, form, start, wanted.messages
