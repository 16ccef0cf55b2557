"""What there is to read of a partition, and how far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.errors import UnknownTopicError
from penstock.broker.reading.by_time import find_time
from penstock.broker.reading.conversion_cache import Taken
from penstock.broker.reading.native import BatchReader
from penstock.broker.reading.unseen import Unseen
from penstock.broker.settings import Flush
from penstock.broker.topics.followed import Followed
from penstock.broker.topics.leader_epochs import LeaderEpochs
from penstock.broker.topics.opening import unopened
from penstock.broker.transactions.committed import Committed
from penstock.broker.transactions.isolation import Isolation
from penstock.broker.transactions.on_partition import PartitionTransactions
from penstock.log.errors import OffsetOutOfRangeError
from penstock.log.header import read_header
from penstock.records.errors import MalformedBatchError

if TYPE_CHECKING:
    from penstock.broker.reading.conversion_cache import ConversionCache
    from penstock.broker.topics.leader_epochs import EpochEnd
    from penstock.broker.topics.own_topic import OwnTopic
    from penstock.broker.transactions.aborted_range import AbortedRange
    from penstock.broker.transactions.aborted_stretch import AbortedTransaction
    from penstock.log.batches import StoredBatch
    from penstock.log.header import BatchHeader, Magic
    from penstock.memory import Memory
    from penstock.records import Encoding
    from penstock.session import Buffer, FileRange


class Readable(Followed):
    """A partition as its readers meet it, those of all protocols."""

    def __init__(self, topic: OwnTopic, index: int, conversions: ConversionCache) -> None:
        super().__init__()
        self.topic = topic
        self.index = index
        self.deleted = False
        self.transactions = PartitionTransactions(conversions.memory.producers)
        self.unseen = Unseen(conversions.memory.producers)
        self._leader_epochs = LeaderEpochs()
        self._log = unopened()
        self._conversions = conversions
        self._reader = BatchReader(self._log, conversions)

    @property
    def memory(self) -> Memory:
        """Where what is read of this partition is counted."""
        return self._conversions.memory

    @property
    def name(self) -> str:
        """What log lines call it."""
        return f"{self.topic.name.kafka}-{self.index}"

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        """The next offset to be written."""
        return self._log.end_offset

    @property
    def safe_offset(self) -> int:
        """The first offset that a crash may take back, as the topic's flush policy has it."""
        return self.readable_end(Isolation.READ_UNCOMMITTED)

    @property
    def safe_bytes(self) -> int:
        """Bytes of all batches that became safe since it was opened: two looks differ by them."""
        if self.topic.config.flush is Flush.ACKNOWLEDGED:
            return self._log.flushed_bytes
        return self._log.written_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of all stored batches."""
        return self._log.size_bytes

    def bytes_from(self, offset: int) -> int:
        """Return at most how many bytes are stored from the batch with `offset` on."""
        return self._log.bytes_from(offset)

    @property
    def segment_starts(self) -> list[int]:
        """The first offset of each segment, the oldest first."""
        return [self.start_offset, *self._log.full_segment_ends]

    def readable_end(self, isolation: Isolation = Isolation.READ_COMMITTED) -> int:
        """The first offset that a reader of this isolation does not see yet.

        It is Kafka's high watermark, or its last stable offset, and Pulsar's last confirmed entry:
        nobody sees what a crash can take back. Nothing but this says how far readers see.
        """
        acknowledged = self.topic.config.flush is Flush.ACKNOWLEDGED
        safe = self._log.flushed_offset if acknowledged else self._log.written_offset
        transactions = self.transactions
        if not (transactions.open or transactions.ended):
            return safe  # As on most partitions at most times.
        return safe if isolation is Isolation.READ_UNCOMMITTED else transactions.stable_end(safe)

    def read_end(self, offset: int, isolation: Isolation = Isolation.READ_COMMITTED) -> int:
        """How far a reader at `offset` reads at once: not to the end where very many aborted."""
        end = self.readable_end(isolation)
        if isolation is Isolation.READ_UNCOMMITTED:
            return end
        return self.transactions.near_end(offset, end)

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that have messages from `start` up to `end`, which is no
        further than READ_COMMITTED sees, by their first offsets.
        """
        return self._settled().aborted(start, end)

    def packed_aborted(self, start: int, end: int) -> AbortedRange:
        """Return the same as they are packed: of a whole log there may be millions."""
        return self._settled().packed(start, end)

    def named_in(self, start: int, end: int) -> Buffer:
        """Return those that have messages in what a read of what is committed returned, from
        `start` up to `end`, in rows of aborted_rows.ROW, by their first offsets.

        Raises OffsetOutOfRangeError where that was given up meanwhile: nobody knows then.
        """
        transactions = self._that_aborted(start)
        return b"" if transactions is None else transactions.named(start, end)

    def committed_in(self, start: int, end: int) -> Committed:
        """Return what tells which batches are committed of those that a read returned. Raises
        OffsetOutOfRangeError as `named_in`.
        """
        transactions = self._that_aborted(start)
        return Committed(() if transactions is None else transactions.aborted(start, end))

    async def read(
        self,
        offset: int,
        max_bytes: int,
        magic: Encoding,
        isolation: Isolation = Isolation.READ_COMMITTED,
    ) -> list[Buffer]:
        """Return whole batches in the encoding of `magic`, from the one that contains `offset` on.

        Batches that were written in that encoding are views of the stored bytes; the others are
        converted and keep their offsets. Empty where `offset` is the readable end. The first
        batch is returned whatever its size, the others fit in `max_bytes` (KIP-74).

        Raises UnknownTopicError, OffsetOutOfRangeError, and where `offset` is in a batch that can't
        be read, CorruptBatchError or MalformedBatchError.
        """
        return (await self.read_on(offset, max_bytes, magic, isolation)).parts

    async def read_on(
        self,
        offset: int,
        max_bytes: int,
        magic: Encoding,
        isolation: Isolation = Isolation.READ_COMMITTED,
    ) -> Taken:
        """Return what `read` does, and where it ends, for whoever reads on there.

        What is asked of its transactions in the same turn fits it.
        """
        while True:
            self._check_alive()
            log, replacements = self._log, self._log.replacements
            end = self.read_end(offset, isolation)
            taken = await self._reader.read(offset, max_bytes, magic, end)
            is_as_it_was = log is self._log and log.replacements == replacements
            # Compaction may have had it forgotten that something of it was aborted.
            if is_as_it_was or not self.transactions.has_aborted:
                return taken

    async def read_stored(
        self, offset: int, max_bytes: int, isolation: Isolation = Isolation.READ_COMMITTED
    ) -> Taken:
        """Return whole batches as they are stored, whatever their encodings, as `read_on` does.

        Chunks of Pulsar's messages are not joined. Raises what `read` raises.
        """
        self._check_alive()
        end = self.read_end(offset, isolation)
        return Taken.of(await self._log.read(offset, max_bytes, end))

    def latest(
        self, offset: int, max_bytes: int, magic: Encoding, isolation: Isolation
    ) -> Taken | None:
        """Return what `read_on` would, if all of that was appended a moment ago and is in memory.

        None where `read` is the way. Raises UnknownTopicError.
        """
        self._check_alive()
        return self._reader.latest(offset, max_bytes, magic, self.read_end(offset, isolation))

    def sound_range(
        self,
        offset: int,
        max_bytes: int,
        magic: Magic,
        isolation: Isolation = Isolation.READ_COMMITTED,
    ) -> FileRange | None:
        """Return what `read` would, or less, as a range of a file that nobody has to read.

        None where `read` is the way. Raises UnknownTopicError and OffsetOutOfRangeError.
        """
        self._check_alive()
        return self._log.sound_range(offset, max_bytes, magic, self.read_end(offset, isolation))

    def sound_batches(
        self, offset: int, max_bytes: int, max_records: int, magic: Magic
    ) -> list[StoredBatch]:
        """Return whole batches of up to `max_records` records, as ranges without their headers.

        Empty where `read` is the way. Raises UnknownTopicError and OffsetOutOfRangeError.
        """
        self._check_alive()
        end = self.read_end(offset)
        return self._log.sound_batches(offset, max_bytes, max_records, magic, end)

    async def batch_at(self, offset: int) -> BatchHeader | None:
        """Return the header of the batch that contains `offset`, or None at the end.

        Raises OffsetOutOfRangeError, CorruptBatchError and LogReadError.
        """
        if self.readable_end() <= offset <= self.end_offset:
            return None
        return await self._log.batch_at(offset)

    async def entry_at(self, offset: int, magic: Magic) -> tuple[int, int] | None:
        """Return where the batch begins and ends that readers of the encoding of `magic` get with
        the message at an offset; None at the end.

        Of a batch that has lost messages it may be a part; a message that was lost is one by
        itself. Raises what `batch_at` raises, and UnknownTopicError.
        """
        header = await self.batch_at(offset)
        if header is None:
            return None
        stored = header.base_offset, header.next_offset
        if header.is_full:
            return stored
        try:
            parts = await self.read(offset, 1, magic)
        except MalformedBatchError:
            return stored  # It is one damaged batch, for whoever reads it.
        if not parts:
            return None
        header = read_header(parts[0])
        if header.base_offset > offset:
            return offset, offset + 1
        return header.base_offset, header.next_offset

    async def at_time(
        self,
        timestamp_ms: int,
        start: int | None = None,
        isolation: Isolation = Isolation.READ_COMMITTED,
    ) -> int | None:
        """Return the base offset of the first batch, from the one at `start` on, that has a message
        of this time or later as far as its header says; None where there is none.

        Raises LogReadError.
        """
        return await find_time(self._log, timestamp_ms, start, self.readable_end(isolation))

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch at which the message at `offset` was, or will be, written."""
        return self._leader_epochs.at(offset)

    def epoch_end(self, epoch: int) -> EpochEnd:
        """Return the largest leader epoch up to `epoch`, and the offset at which it ended: the
        current one where readers do. UNKNOWN_EPOCH where there was none (KIP-101, KIP-279).
        """
        return self._leader_epochs.end_of(epoch, self.safe_offset)

    def _settled(self) -> PartitionTransactions:
        """Return what is known of transactions, and of all whose ends are safe by now."""
        transactions = self.transactions
        if transactions.ended:  # As few are, and each read of what is committed asks.
            transactions.settle(self.safe_offset)
        return transactions

    def _check_alive(self) -> None:
        if self.deleted:
            raise UnknownTopicError(f"topic {self.topic.name.kafka} was deleted")

    def _that_aborted(self, start: int) -> PartitionTransactions | None:
        """Return what knows which have aborted of those that were read from `start` on; None where
        none ever has. Raises OffsetOutOfRangeError.
        """
        transactions = self._settled()
        if not transactions.has_aborted:
            return None
        if start < self._log.start_offset:
            raise OffsetOutOfRangeError(start, self.start_offset, self.end_offset)
        return transactions
