"""Reading partitions for one answer to a Fetch: what is read of each, and how much of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from penstock.broker.topics.opening import open_all
from penstock.broker.transactions.aborted_rows import ROW
from penstock.broker.transactions.isolation import Isolation
from penstock.kafka.errors import refusal
from penstock.kafka.handlers.topics import check_leader_epoch, find_topic, isolation_of
from penstock.kafka.message_sets import cut, encoding_of, read_messages
from penstock.kafka.wire import ErrorCode, api
from penstock.kafka.wire.primitives import Rows
from penstock.limits import KAFKA_CONVERSION_SECONDS, KAFKA_FETCH_BYTES, KAFKA_PROMPT_FETCH_BYTES
from penstock.log.errors import OffsetOutOfRangeError
from penstock.log.header import Magic
from penstock.memory import MemoryShortError
from penstock.records import MessageSetMagic
from penstock.session import in_memory
from penstock.tasks import within

if TYPE_CHECKING:
    from penstock import memory
    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import FetchRequest, FetchResponse
    from penstock.pace import Pace
    from penstock.records import Encoding
    from penstock.session import Part

FIRST_VERSION_WITH_WHOLE_MESSAGES: Final = 3
FIRST_VERSION_WITH_IDS: Final = 13
_RESPONSE: Final = api("Fetch").response
_LOOKED_AT_ONCE: Final = 64
"""Partitions of which few have something: more are looked at in steps."""
_PASSED_READS: Final = 256
"""Of one partition and answer: each may find but a gap, a whole segment as compaction leaves it."""
NO_MINIMUM: Final = 1
"""The min_bytes of a client that waits for anything at all, which is the default, or 0."""


class Terms(NamedTuple):
    """What holds for each partition of a request."""

    max_bytes: int
    isolation: Isolation
    encoding: Encoding
    """What the client can read: batches, or message sets."""
    cuts_messages: bool
    """Whether a message that is larger than a partition may have is cut off."""
    from_file_bytes: int | None
    """How large an answer is at least that goes from the file to the client; None for none."""


class Reading:
    """One partition of the request, and the part of the answer that is filled from it."""

    def __init__(
        self,
        asked: FetchRequest.FetchPartition,
        result: FetchResponse.PartitionData,
        terms: Terms,
    ) -> None:
        self.asked = asked
        self.result = result
        self._max_bytes = min(asked.partition_max_bytes, terms.max_bytes)
        self._terms = terms
        self.partition: Partition | None = None
        self.bytes_read = self.bytes_held = 0
        self.does_not_fit = False
        self._safe_bytes = 0
        self._readable_end = 0
        """How far it could be read when that was done."""

    @property
    def failed(self) -> bool:
        return bool(self.result.error_code != ErrorCode.NONE)

    @property
    def bytes_readable(self) -> int:
        """What was read and what became readable since."""
        partition = self.partition
        if partition is None or partition.deleted:
            return self.bytes_read
        if self._terms.isolation is Isolation.READ_COMMITTED and partition.transactions.began:
            if partition.readable_end() == self._readable_end:
                return self.bytes_read
            return max(self.bytes_read, partition.bytes_from(self.asked.fetch_offset))
        return self.bytes_read + partition.safe_bytes - self._safe_bytes

    @property
    def has_more(self) -> bool:
        """Whether a read finds something, or a topic that is gone."""
        partition = self.partition
        if partition is None or self.failed:
            return False
        return partition.deleted or (
            partition.is_open
            and self.asked.fetch_offset < partition.readable_end(self._terms.isolation)
        )

    @property
    def bytes_wanted(self) -> int:
        """What a read may take at most, as far as can be told without one; where it has more."""
        partition = self.partition
        if partition is None or partition.deleted:
            return 0
        return max(0, min(self._max_bytes, partition.bytes_from(self.asked.fetch_offset)))

    @property
    def is_gone(self) -> bool:
        return self.partition is not None and self.partition.deleted

    async def read(self, max_bytes: int, pace: Pace, *, is_first: bool) -> None:
        """Fill the result. Only the first batch of an answer may be larger than `max_bytes`."""
        self._begin()
        assert self.partition is not None
        if isinstance(self._terms.encoding, MessageSetMagic):
            parts = await self._messages(self.partition, self._terms.encoding, max_bytes)
        else:
            parts, start, end = await self._batches(self.partition, max_bytes, pace)
            if parts:
                self._name_aborted(self.partition, start, end)
        self.bytes_read = sum(map(len, parts))
        self.does_not_fit = self.bytes_read > max_bytes and not is_first
        if self.does_not_fit:
            parts, self.bytes_read = [], 0
        self.bytes_held = in_memory(parts)
        self.result.records = parts or b""

    async def _batches(
        self, partition: Partition, max_bytes: int, pace: Pace
    ) -> tuple[list[Part], int, int]:
        """Return what is read, and the offsets from which and up to which it was.

        What compaction has left nothing of is passed, as far as something is behind it: some
        clients take an answer without any message for one that was too small.
        """
        start = self.asked.fetch_offset
        for _ in range(_PASSED_READS):
            parts, end, has_messages = await self._next_batches(partition, start, max_bytes)
            if has_messages or end >= partition.readable_end(self._terms.isolation):
                break
            start = end
            if pace.is_over():
                await pace.others()
        return parts, start, end

    async def _next_batches(
        self, partition: Partition, offset: int, max_bytes: int
    ) -> tuple[list[Part], int, bool]:
        """Return what one read finds, the offset behind it, and whether a message can be in it."""
        isolation = self._terms.isolation
        from_file_bytes = self._terms.from_file_bytes
        if from_file_bytes is not None:
            most = min(max_bytes, self.asked.partition_max_bytes)
            stored = partition.sound_range(offset, most, Magic.KAFKA, isolation)
            if stored is not None and len(stored) >= from_file_bytes:
                return [stored], stored.next_offset, True
        most = min(max_bytes, self._max_bytes)
        taken = await partition.read_on(offset, most, Magic.KAFKA, isolation)
        return [*taken.parts], taken.next_offset, not taken.is_gap

    def take_latest(self, max_bytes: int) -> bool:
        """Fill the result if all that is to be read was appended a moment ago."""
        partition = self.partition
        assert partition is not None
        if partition.deleted:
            return False
        most = min(max_bytes, self._max_bytes)
        _, isolation, encoding, *_ = self._terms
        latest = partition.latest(self.asked.fetch_offset, most, encoding, isolation)
        if latest is None:
            return False
        self._begin()
        self._name_aborted(partition, self.asked.fetch_offset, latest.next_offset)
        self.bytes_read = latest.size
        self.result.records = latest.parts
        return True

    def _name_aborted(self, partition: Partition, start: int, end: int) -> None:
        """Say which transactions were aborted that have messages in what was read."""
        if self._terms.isolation is Isolation.READ_COMMITTED:
            aborted = partition.named_in(start, end)
            if aborted:
                rows = Rows(aborted, ROW.size)
                named = cast("list[FetchResponse.AbortedTransaction]", rows)
                self.result.aborted_transactions = named

    async def _messages(
        self, partition: Partition, magic: MessageSetMagic, max_bytes: int
    ) -> list[Part]:
        offset, isolation = self.asked.fetch_offset, self._terms.isolation
        most = min(max_bytes, self._max_bytes)
        messages = await read_messages(partition, offset, most, magic, isolation)
        cut_at = self.asked.partition_max_bytes if self._terms.cuts_messages else None
        return [*cut(messages, most, cut_at)]

    def leave_empty(self) -> None:
        """Fill the result of a partition for which the answer has no room, without a read."""
        self._begin()
        assert self.partition is not None
        start, end = self.partition.start_offset, self.partition.end_offset
        if not start <= self.asked.fetch_offset <= end:
            raise OffsetOutOfRangeError(self.asked.fetch_offset, start, end)

    def _begin(self) -> None:
        assert self.partition is not None
        partition = self.partition
        self._safe_bytes = partition.safe_bytes
        self.bytes_read = self.bytes_held = 0
        self.result.records = b""
        self.result.high_watermark = partition.readable_end(Isolation.READ_UNCOMMITTED)
        self.result.last_stable_offset = partition.readable_end(Isolation.READ_COMMITTED)
        self._readable_end = self.result.last_stable_offset
        is_committed = self._terms.isolation is Isolation.READ_COMMITTED
        self.result.aborted_transactions = [] if is_committed else None
        self.result.log_start_offset = partition.start_offset

    def refuse(self, error: Exception) -> None:
        self.result.error_code = refusal(error).code
        self.result.high_watermark = -1
        self.result.last_stable_offset = self.result.log_start_offset = -1
        self.result.records = b""
        self.bytes_read = self.bytes_held = 0


def terms_of(request: FetchRequest, call: Call) -> Terms:
    encoding = encoding_of(call.version)
    # A message set is cut where its client says, so it has to be read so far.
    is_prompt = request.min_bytes <= NO_MINIMUM and encoding is Magic.KAFKA
    return Terms(
        KAFKA_PROMPT_FETCH_BYTES if is_prompt else KAFKA_FETCH_BYTES,
        isolation_of(request.isolation_level),
        encoding,
        cuts_messages=call.version < FIRST_VERSION_WITH_WHOLE_MESSAGES,
        # A range may end a little early, for which nobody has to wait.
        from_file_bytes=request.min_bytes if call.client.transport.sends_files else None,
    )


async def opened(readings: list[Reading], pace: Pace) -> None:
    """Open the logs of those to be read that are closed."""
    closed: list[Partition] = []
    for reading in readings:
        if reading.partition is not None and not reading.partition.is_open:
            closed.append(reading.partition)
        if pace.is_over():
            await pace.others()
    if closed:
        await open_all(closed)


def find(
    topic: FetchRequest.FetchTopic,
    call: Call,
    terms: Terms,
    asked: FetchRequest.FetchPartition,
) -> Reading:
    result = _RESPONSE.PartitionData(
        partition_index=asked.partition, aborted_transactions=None, records=b""
    )
    reading = Reading(asked, result, terms)
    try:
        by_id = call.version >= FIRST_VERSION_WITH_IDS
        found = find_topic(call.broker, topic.topic, topic.topic_id, by_id=by_id)
        reading.partition = found.partition(asked.partition)
        check_leader_epoch(call.broker, reading.partition, asked.current_leader_epoch)
    except Exception as error:
        reading.refuse(error)
    return reading


async def read_in_time(
    readings: list[Reading], request: FetchRequest, held: memory.Reading, pace: Pace
) -> bool:
    """Read as much as memory has room for; False where it had none, or a conversion takes long."""
    max_bytes = min(request.max_bytes, KAFKA_FETCH_BYTES)
    wanted = await _bytes_wanted(readings, max(0, max_bytes), pace)
    if wanted is None:
        held.set(0)
        await _leave_rest_empty(readings, pace)
        return True

    async def read() -> None:
        held.set(0)
        granted = await held.grant(wanted)
        await _read(readings, max_bytes if granted == wanted else granted, pace)

    try:
        await within(max(request.max_wait_ms / 1000, KAFKA_CONVERSION_SECONDS), read())
    except TimeoutError:
        await _leave_rest_empty(readings, pace)
        return False
    held.set(await _bytes_held(readings, pace))
    return True


def take_latest(readings: list[Reading], request: FetchRequest) -> bool:
    """Fill the answer if one partition has something, which was appended a moment ago."""
    if len(readings) > _LOOKED_AT_ONCE:
        return False
    more = [reading for reading in readings if reading.has_more]
    if len(more) != 1 or not more[0].take_latest(request.max_bytes):
        return False
    for reading in readings:
        if reading is not more[0]:
            _leave_empty(reading)
    return True


async def _bytes_held(readings: list[Reading], pace: Pace) -> int:
    bytes_held = 0
    for reading in readings:
        bytes_held += reading.bytes_held
        if pace.is_over():
            await pace.others()
    return bytes_held


async def _bytes_wanted(readings: list[Reading], max_bytes: int, pace: Pace) -> int | None:
    """Return what all reads may take at most; None where there is nothing to read."""
    wanted: int | None = None
    for reading in readings:
        if pace.is_over():
            await pace.others()
        if reading.has_more:
            wanted = (wanted or 0) + reading.bytes_wanted
            if wanted >= max_bytes:
                return max_bytes
    return wanted


async def _leave_rest_empty(readings: list[Reading], pace: Pace) -> None:
    for reading in readings:
        if pace.is_over():
            await pace.others()
        if not reading.bytes_read:
            _leave_empty(reading)


def _leave_empty(reading: Reading) -> None:
    try:
        if not reading.failed:
            reading.leave_empty()
    except Exception as error:
        reading.refuse(error)


async def _read(readings: list[Reading], max_bytes: int, pace: Pace) -> None:
    left = max_bytes
    is_first = True
    for reading in readings:
        if pace.is_over():
            await pace.others()
        if reading.failed:
            continue
        try:
            if left > 0 or is_first:
                await reading.read(max(left, 0), pace, is_first=is_first)
            else:
                reading.leave_empty()
        except MemoryShortError:
            _leave_empty(reading)
        except Exception as error:
            reading.refuse(error)
        is_first = is_first and not reading.bytes_read
        # Reading on after the first batch that does not fit could be made to cost any amount.
        left = 0 if reading.does_not_fit else left - reading.bytes_read


async def suffices(readings: list[Reading], min_bytes: int, pace: Pace) -> bool:
    readable = 0
    for reading in readings:
        if reading.failed or reading.is_gone:
            return True
        readable += reading.bytes_readable
        if pace.is_over():
            await pace.others()
    return readable >= min_bytes
