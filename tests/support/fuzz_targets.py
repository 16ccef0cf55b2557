"""What is fuzzed: the sessions of the three protocols, conversions, and the files of a log."""

from __future__ import annotations

import asyncio
import logging
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from conversation import Conversation, SessionsOfBrokers
from fuzzing import Frames
from iggy_golden import EXCHANGES
from kafka_golden import GOLDEN as KAFKA_GOLDEN
from kafka_golden import OLD_GOLDEN
from older_iggy import recorded, requests_of_2023
from penstock import records
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings, Flush
from penstock.iggy.session import sessions as iggy_sessions
from penstock.kafka.session import KafkaSession
from penstock.log import CorruptBatchError, Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.batches import no_batches
from penstock.log.header import CRC_START, HEADER_SIZE, PREFIX_SIZE, Magic, walk
from penstock.pulsar.session import sessions as pulsar_sessions
from penstock.records import MalformedBatchError, MessageSetMagic
from penstock.records.message_sets.faults import Fault, MessageSetError
from penstock.session import Buffer, Buffers, PeerError, Session
from pulsar_golden import GOLDEN as PULSAR_GOLDEN

_GOLDEN_BATCHES: Final = Path(__file__).parents[1] / "records" / "golden"
RENEWED_AFTER: Final = 2_000
"""Inputs after which a broker is closed and a new one begins, so that topics don't pile up."""
_LOGGERS: Final = ("penstock", "asyncio")
_TURNS: Final = 4
"""Turns of the event loop that requests have before what still waits is cancelled."""

SESSIONS: Final[dict[str, SessionsOfBrokers]] = {
    "kafka": SessionsOfBrokers(lambda broker: lambda to: KafkaSession(broker, to)),
    "pulsar": SessionsOfBrokers(pulsar_sessions),
    "iggy": SessionsOfBrokers(iggy_sessions),
    "iggy-legacy": SessionsOfBrokers(iggy_sessions),
    "iggy-2023": SessionsOfBrokers(iggy_sessions),
}
_LEGACY: Final = ("0.5.0", "0.6.0", "0.7.0", "0.8.0")


def seeds(protocol: str) -> list[Frames]:
    """Recorded sessions, cut into short ones that begin as a client does."""
    if protocol == "kafka":
        sent = [each.frame for each in KAFKA_GOLDEN]
        old = [each.frame for each in OLD_GOLDEN]
        return [sent[start : start + 4] for start in range(0, len(sent), 2)] + [
            old[start : start + 6] for start in range(0, len(old), 5)
        ]
    if protocol == "iggy":
        sent = [each.request for each in EXCHANGES]
        return [[sent[0], *sent[start : start + 8]] for start in range(1, len(sent), 4)] + [sent]
    if protocol == "iggy-2023":
        sent, setting_up = requests_of_2023(), 3
        return [[*sent[:setting_up], each] for each in sent[setting_up:]] + [sent]
    if protocol == "iggy-legacy":
        sessions = [[each.request for each in recorded(f"apache-iggy-{name}")] for name in _LEGACY]
        return [
            [*of_one[:2], *of_one[start : start + 8]]
            for of_one in sessions
            for start in range(2, len(of_one), 4)
        ] + sessions
    connect = next(each.frame for each in PULSAR_GOLDEN if each.command == "CONNECT")
    named: dict[str, list[bytes]] = {}
    for each in PULSAR_GOLDEN:
        named.setdefault(each.command, []).append(each.frame)
    whole = [
        *("PARTITIONED_METADATA", "LOOKUP", "PRODUCER", "SEND", "SUBSCRIBE", "FLOW", "ACK"),
        *("SEEK", "REDELIVER_UNACKNOWLEDGED_MESSAGES", "CLOSE_CONSUMER", "UNSUBSCRIBE"),
    ]
    return [
        [connect, *(named[name][each % len(named[name])] for name in whole)] for each in range(6)
    ] + [[connect, *frames] for frames in named.values()]


class _Errors(logging.Handler):
    """Keeps what the broker logs as an error: to a client's bytes it must never come to that."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(logging.Formatter().format(record))


class _Peer:
    """The transport of a session without a socket; it takes everything."""

    peer = "127.0.0.1:50000"
    address = "127.0.0.1"
    local_address = ("127.0.0.1", 9092)
    sends_files = False

    def __init__(self) -> None:
        self.closed = ""

    def write(self, parts: Buffers) -> None:
        """Drop it."""

    async def writable(self) -> None:
        """Take everything at once."""

    def close(self, reason: str) -> None:
        self.closed = self.closed or reason


class SessionTarget:
    """Feeds a protocol's sessions over a broker in a folder, as pipelined bytes of one client.

    Every frame ends in an answer, in the protocol's own error or in a PeerError, which closes the
    connection; the broker serves a sound client afterwards.
    """

    def __init__(self, protocol: str, folder: Path) -> None:
        self._protocol = protocol
        self._folder = folder
        self._broker: Broker | None = None
        self._runs = 0
        self._errors = _Errors()

    async def __call__(self, frames: Frames) -> None:
        if self._broker is None or self._runs % RENEWED_AFTER == 0:
            await self.renew()
        assert self._broker is not None
        self._runs += 1
        await _converse(self._protocol, self._broker, b"".join(frames))
        assert not self._errors.found, self._errors.found[0]

    async def renew(self) -> None:
        """Begin with a new broker; the one before must stop in order."""
        await self.close()
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self._errors)
        settings = BrokerSettings(flush=Flush.WRITTEN)
        self._broker = await Broker.open(self._folder / "data", settings)

    async def close(self) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self._errors)
        if self._broker is not None:
            assert await _converse(self._protocol, self._broker, b"".join(seeds(self._protocol)[0]))
            await self._broker.close()
            shutil.rmtree(self._folder / "data")
            self._broker = None


async def _converse(protocol: str, broker: Broker, sent: bytes) -> int:
    """Have these bytes answered; returns how many answers came."""
    answers: list[Buffers] = []
    failures: list[Exception] = []
    peer = _Peer()
    session = SESSIONS[protocol].make(broker, peer)
    conversation = Conversation(session, answers.append, failures.append)
    with suppress(PeerError):
        _feed(conversation, session, memoryview(bytearray(sent)), peer)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    conversation.pipeline.cancel()
    await conversation.pipeline.ended()
    conversation.has_turns = False
    session.close()
    for failure in failures:
        if not isinstance(failure, PeerError):
            raise failure
    return len(answers)


def _feed(conversation: Conversation, session: Session, sent: memoryview, peer: _Peer) -> None:
    """Cut bytes into frames as the server does, and hand them over until the session closes."""
    while len(sent) and not peer.closed:
        size = session.frame_size(sent)
        if size is None or size > len(sent):
            return
        assert size > 0, "a frame has bytes"
        conversation.pipeline.take(sent[:size])
        sent = sent[size:]


def golden_batches() -> list[Frames]:
    """Stored batches that real clients wrote."""
    return [
        [bytes.fromhex("".join(path.read_text().split()))]
        for path in sorted(_GOLDEN_BATCHES.glob("*.hex"))
    ]


async def convert_batches(frames: Frames) -> None:
    """Convert what may be no batches at all: each is converted, or found malformed.

    What comes out can be read again.
    """
    for frame in frames:
        stored = bytearray(frame)
        if len(stored) < HEADER_SIZE:
            continue
        stored[8:PREFIX_SIZE] = (len(stored) - PREFIX_SIZE).to_bytes(4)
        stored[0] &= 0x7F
        with suppress(MalformedBatchError):
            records.is_compressed(stored)
            for piece in records.join_messages(memoryview(stored), lambda _start, _end: ()):
                for target in Magic:
                    for converted in records.convert(piece, target):
                        records.decode(converted)
                for magic in MessageSetMagic:
                    for converted in records.convert(piece, magic):
                        _read_again(converted)


def _read_again(message_sets: Buffer) -> None:
    """Make batches of message sets; only a time may be one that no client may give."""
    from penstock.records.message_sets.decode import batch_of_messages  # numpy

    for position, header in walk(message_sets):
        body = memoryview(message_sets)[position + HEADER_SIZE : position + header.size]
        try:
            batch_of_messages(body)
        except MessageSetError as error:
            if error.fault is not Fault.TIMESTAMP:
                raise


class LogTarget:
    """Opens a log whose files were changed, and reads all of it.

    Whatever the bytes, the log opens, reading moves on, and what is handed out is sound.
    """

    NAMES: Final = (f"{0:020d}.log", f"{0:020d}.index", "checkpoint")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._flusher = Flusher(threads=1)

    async def seeds(self) -> list[Frames]:
        """Return the files of a log with batches of all encodings."""
        log = self._open()
        for frames in 4 * golden_batches():
            for position, header in walk(frames[0]):
                log.append([bytearray(frames[0][position : position + header.size])], header)
        log.close()
        files = [self._folder / name for name in self.NAMES]
        seed = [path.read_bytes() if path.exists() else b"" for path in files]
        return [seed, [seed[0][:2_000], *seed[1:]]]

    async def __call__(self, frames: Frames) -> None:
        shutil.rmtree(self._folder)
        self._folder.mkdir()
        for name, content in zip(self.NAMES, frames, strict=False):
            sound = _with_checksum(content) if name == "checkpoint" else content
            (self._folder / name).write_bytes(sound)
        log = self._open()
        try:
            await _read_all(log)
        finally:
            log.close()

    def close(self) -> None:
        self._flusher.close()

    def _open(self) -> LocalLog:
        config = LogConfig(index_interval_bytes=256)
        return LocalLog.open(self._folder, config, RealFileSystem(), self._flusher)


def _with_checksum(content: bytes) -> bytes:
    """Every other checkpoint gets a sound checksum, so that what is behind it is reached."""
    if len(content) < 4 or crc32c(content) & 1:
        return content
    return content[:-4] + crc32c(content[:-4]).to_bytes(4)


async def _read_all(log: LocalLog) -> None:
    offset = log.start_offset
    assert 0 <= offset <= log.end_offset
    while offset < log.end_offset:
        try:
            batches = await log.read(offset, 1_000)
        except CorruptBatchError as damage:
            following = damage.next_offset
            batches = no_batches(offset)
        else:
            following = batches.next_offset
        assert following > offset, "reading moves on, behind damage too"
        for position, header in walk(batches.data):
            batch = memoryview(batches.data)[position : position + header.size]
            assert crc32c(batch[CRC_START:]) == int.from_bytes(batch[17:21]), "sound bytes only"
        offset = following
