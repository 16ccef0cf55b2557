"""A producer's batch made ready for the log, and stored batches cut to what a poll asks for.

The compiled functions behind it are loaded by the first call; a handler awaits `IggyServer.prepare`
before, so that the event loop does not stand still meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

from penstock import wall_clock
from penstock.iggy.wire.batch import BATCH_HEADER_SIZE, MessageForm, read_batch_header
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.limits import IGGY_RESTATED_AT_ONCE_BYTES
from penstock.log.header import Magic, build_header
from penstock.session import FileRange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.broker.topics.partition import Partition
    from penstock.iggy.wire.batch import BatchHeader
    from penstock.records.iggy.older_polls import Frames, Unread
    from penstock.session import Part


class Checked(NamedTuple):
    """A batch that may be stored. The times are the producer's, in microseconds since 1970."""

    body: memoryview
    message_count: int
    first_timestamp: int
    max_timestamp: int


def check(body: memoryview, count: int, form: MessageForm) -> Checked:
    """Verify a producer's batch of `count` messages, and make it today's; raises IggyError.

    Nobody knows the `count` of MessageForm.EARLY.
    """
    if form is not MessageForm.BATCH:
        return _restated(body, count, form)
    from penstock.records.iggy.batch import IggyBatchError, verify_iggy_batch  # noqa: PLC0415  # numpy

    header = read_batch_header(body)
    if not count == header.message_count > 0:
        raise IggyError(ErrorCode.INVALID_MESSAGES_COUNT, f"{header.message_count}, not {count}")
    try:
        facts = verify_iggy_batch(body)
    except IggyBatchError as error:
        raise IggyError(_CODES[error.fault.name], str(error)) from error
    return Checked(body, *facts)


def _restated(messages: memoryview, count: int, form: MessageForm) -> Checked:
    from penstock.records.iggy.batch import IggyBatchError  # noqa: PLC0415  # numpy
    from penstock.records.iggy.older import Form, from_older  # noqa: PLC0415  # numpy

    try:
        body, facts = from_older(messages, Form[form.name], count)
    except IggyBatchError as error:
        raise IggyError(_CODES[error.fault.name], str(error)) from error
    return Checked(body, *facts)


_CODES: Final = {
    "LAYOUT": ErrorCode.INVALID_MESSAGES_SIZE,
    "FRAME_CHECKSUM": ErrorCode.INVALID_MESSAGE_CHECKSUM,
    "BATCH_CHECKSUM": ErrorCode.INVALID_BATCH_CHECKSUM,
    "EMPTY_PAYLOAD": ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH,
    "OFFSET_DELTA": ErrorCode.INVALID_MESSAGES_COUNT,
    "HEADER_KEY": ErrorCode.INVALID_HEADER_KEY,
    "HEADER_VALUE": ErrorCode.INVALID_HEADER_VALUE,
    "HEADER_KIND": ErrorCode.INVALID_HEADER_KIND,
    "LONG_HEADERS": ErrorCode.TOO_BIG_USER_HEADERS,
    "LONG_PAYLOAD": ErrorCode.TOO_BIG_MESSAGE_PAYLOAD,
    "INDEX": ErrorCode.INVALID_INDEXES_COUNT,
    "RESERVED": ErrorCode.INVALID_RESERVED_FIELD,
}
"""Those that apache-iggy's own client gives, which checks most of it before it sends."""


def append(partition: Partition, batch: Checked) -> int:
    """Stamp a checked batch and write it to the log; return its base offset.

    Raises what Partition.append raises.
    """
    from penstock.records.iggy.batch import stamp_iggy_batch  # noqa: PLC0415  # numpy

    now_us = wall_clock.now_us()
    # Nothing is awaited between here and the append, so this is the offset that the log gives.
    expected_offset = partition.end_offset
    stamp_iggy_batch(batch.body, partition.index, expected_offset, now_us)
    log_header = build_header(
        Magic.IGGY,
        batch.body,
        record_count=batch.message_count,
        base_timestamp=batch.first_timestamp // 1000,
        # A poll from a time means the server's time, so the time index must not lie before it.
        max_timestamp=max(batch.max_timestamp, now_us) // 1000,
    )
    base_offset = partition.append([log_header, batch.body])
    assert base_offset == expected_offset, "the stamp and the log must say the same"
    return base_offset


class Cut(NamedTuple):
    """Part of a batch, ready for a poll's reply; the last offset is -1 where nothing is left."""

    parts: Sequence[Part]
    """A whole batch, or a header and frames."""
    messages: int
    last_offset: int
    read: Callable[[memoryview], None] | None = None
    """What fills memory with it, where it is a range of a file; raises LogReadError."""


_NOTHING: Final = Cut([], 0, -1)


class Stored(NamedTuple):
    """A batch as it is stored. Without a header it says that its offsets hold no messages."""

    last_offset: int
    header: BatchHeader | None
    body: memoryview

    @classmethod
    def of(cls, last_offset: int, body: memoryview) -> Self:
        return cls(last_offset, read_batch_header(body) if body else None, body)


def cut(batch: Stored, first_offset: int, count: int) -> Cut:
    """Return up to `count` messages of a stored batch, from an offset on.

    A batch that is wanted whole is handed out as it is; of another one, whole frames go behind a
    new header.
    """
    last_offset, header, body = batch
    if header is None:
        return _NOTHING
    if first_offset <= header.base_offset and count >= header.message_count:
        return Cut([body], header.message_count, last_offset)
    from penstock.records.iggy.cut import cut_iggy_batch  # noqa: PLC0415  # numpy

    run = cut_iggy_batch(body, max(0, first_offset - header.base_offset), count)
    if run.messages == 0:
        return _NOTHING
    parts = [run.header, body[run.start : run.end]]
    return Cut(parts, run.messages, header.base_offset + run.last_offset_delta)


def is_work(size: int, form: MessageForm) -> bool:
    """Whether it is more than work for a moment to bring so many bytes into another form."""
    return form is not MessageForm.BATCH and size > IGGY_RESTATED_AT_ONCE_BYTES


def in_form(cuts: Sequence[Cut], form: MessageForm) -> Sequence[Part]:
    """Return messages of stored batches as clients of an older dialect read them.

    Raises LogReadError where a range of a file is not in memory, or not sound any more.
    """
    from penstock.records.iggy.older import Form  # noqa: PLC0415  # numpy
    from penstock.records.iggy.older_polls import to_older  # noqa: PLC0415  # numpy

    messages = sum([cut.messages for cut in cuts])
    return [to_older([_frames(cut) for cut in cuts], messages, Form[form.name])]


def _frames(cut: Cut) -> Frames | Unread:
    from penstock.records.iggy.older_polls import Frames, Unread  # noqa: PLC0415  # numpy

    if cut.read is not None:
        return Unread(len(cut.parts[0]), cut.read)
    header, data = cut.parts[0], cut.parts[-1]
    assert not isinstance(header, FileRange)
    assert not isinstance(data, FileRange)
    return Frames(header, data, BATCH_HEADER_SIZE if data is header else 0)
