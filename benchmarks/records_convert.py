"""How fast records change their encoding, against copying the same bytes: one core, best of five.

    python benchmarks/records_convert.py

Every batch is 64 KiB of records with keys. MB/s count the stored bytes that go in; the ratio is
to the copy, which is what handing a batch to a client of its own protocol costs at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import cramjam
import numpy as np

from penstock import records
from penstock.log.header import HEADER_SIZE, Magic, build_header, stamp, walk
from penstock.records import MessageSetMagic, field
from penstock.records.arrow import to_arrow
from penstock.records.columns import Columns
from penstock.records.conversion import encode
from penstock.records.headers import reserved
from penstock.records.headers.additions import Additions
from penstock.records.iggy.decode import ID_DIGITS
from penstock.records.message_sets.decode import batch_of_messages

BATCH_BYTES = 64 * 1024
RUN_BYTES = 8 * 1024 * 1024
TIME = 1_700_000_000_000
PRODUCER = b"standalone-0-17"
ROW = ("key", "value", "offset", "timestamp", "timestampType")


def kafka_run(value_size: int, *, zstd: bool = False) -> bytes:
    """A run of stored Kafka batches; values are half noise, so that they compress by half."""
    noise = np.random.default_rng(1).integers(0, 256, RUN_BYTES, np.uint8).tobytes()
    run = bytearray()
    offset = 0
    while len(run) < RUN_BYTES:
        body = bytearray()
        count = max(1, BATCH_BYTES // (value_size + 20))
        for index in range(count):
            start = (offset + index) * 7919 % (RUN_BYTES - value_size)
            value = noise[start : start + value_size // 2].ljust(value_size, b"x")
            body += record(index, b"key-%07d" % (offset + index), value)
        attributes = 4 if zstd else 0
        stored = bytes(cramjam.zstd.compress(bytes(body))) if zstd else bytes(body)
        header = build_header(
            Magic.KAFKA,
            stored,
            record_count=count,
            base_timestamp=TIME,
            max_timestamp=TIME,
            attributes=attributes,
        )
        stamp(header, offset, 0)
        run += header + stored
        offset += count
    return bytes(run)


def record(delta: int, key: bytes, value: bytes) -> bytes:
    body = b"\0\0" + varint(delta) + varint(len(key)) + key + varint(len(value)) + value + b"\0"
    return varint(len(body)) + body


def varint(number: int) -> bytes:
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def copied(run: bytes) -> float:
    source = np.frombuffer(run, np.uint8)
    target = np.empty_like(source)
    return best(lambda: np.copyto(target, source))


def as_sent(run: bytes, target: Magic) -> bytes:
    """The records of a run as clients of another protocol send them.

    Iggy's give every message an id and a time in microseconds, Pulsar's a producer's name and a
    sequence id; each becomes a header elsewhere, which a conversion of Kafka's records lacks.
    """
    return b"".join(bytes(encode(told(columns, target), target)) for columns in pieces(run))


def told(columns: Columns, target: Magic) -> Columns:
    """The columns with headers for what a client of this protocol says of itself."""
    additions = Additions(columns)
    if target == Magic.IGGY:
        columns.records[field.TIMESTAMP] += columns.offsets % 1000
        ids = b"".join(b"%0*x" % (ID_DIGITS, offset + 1) for offset in columns.offsets.tolist())
        starts = np.arange(len(columns)) * ID_DIGITS
        sizes = np.full(len(columns), ID_DIGITS)
        additions.add_text(reserved.IGGY_ID, np.frombuffer(ids, np.uint8), starts, sizes)
    if target == Magic.PULSAR:
        starts = np.full(len(columns), additions.arena.add_bytes(PRODUCER))
        sizes = np.full(len(columns), len(PRODUCER))
        additions.add(reserved.PULSAR_PRODUCER, starts, sizes)
        everyone = np.ones(len(columns), np.bool_)
        additions.add_decimals(reserved.PULSAR_SEQUENCE, everyone, columns.offsets)
    return additions.apply()


def rows(run: bytes) -> list[object]:
    return [to_arrow(columns, ROW) for columns in pieces(run)]


def pieces(run: bytes) -> list[Columns]:
    return list(records.decode_run(run, headers=False))


def report(name: str, run: bytes, seconds: float, copy: float, count: int) -> None:
    speed = len(run) / seconds / 1e6
    print(
        f"{name:34} {speed:8.0f} MB/s {count / seconds / 1e6:7.2f} Mrecords/s"
        f" {seconds / copy:7.1f} times a copy"
    )


def main() -> None:
    for value_size in (1000, 100):
        kafka = kafka_run(value_size)
        print(f"\nvalues of {value_size} bytes")
        copy = copied(kafka)
        report("copy", kafka, copy, copy, len(records.decode(kafka)))
        runs = {magic: as_sent(kafka, magic) for magic in Magic}
        for source, run in runs.items():
            count = len(records.decode(run))
            report(f"{source.name} to columns", run, best(lambda r=run: pieces(r)), copy, count)
            report(f"{source.name} to Arrow", run, best(lambda r=run: rows(r)), copy, count)
            for target in Magic:
                if target != source:
                    seconds = best(lambda r=run, t=target: list(records.convert(r, t)))
                    report(f"{source.name} to {target.name}", run, seconds, copy, count)
        for magic in MessageSetMagic:
            report_message_sets(kafka, magic, copy)
        squeezed = kafka_run(value_size, zstd=True)
        seconds = best(lambda r=squeezed: rows(r))
        report("KAFKA zstd to Arrow", squeezed, seconds, copy, len(records.decode(squeezed)))
        small = converted_one_by_one(kafka)
        seconds = best(lambda r=small: list(records.convert(r, Magic.PULSAR)))
        report("KAFKA, batches of one, to PULSAR", small, seconds, copy, len(records.decode(small)))


def report_message_sets(kafka: bytes, magic: MessageSetMagic, copy: float) -> None:
    """What old consumers read of a run, and what old producers would send to have it written."""
    count = len(records.decode(kafka))
    seconds = best(lambda: list(records.convert(kafka, magic)))
    report(f"KAFKA to message sets {magic.name}", kafka, seconds, copy, count)
    converted = b"".join(bytes(part) for part in records.convert(kafka, magic))
    sets = [converted[at + HEADER_SIZE : at + header.size] for at, header in walk(converted)]
    seconds = best(lambda: [batch_of_messages(message_set) for message_set in sets])
    report(f"message sets {magic.name} to KAFKA", converted, seconds, copy, count)


def converted_one_by_one(run: bytes) -> bytes:
    """The first thousand records of a run, each in a batch of its own."""
    columns = records.decode(run)
    batches = np.repeat(columns.batches[:, :1], 1000, axis=1)
    batches[field.BASE_OFFSET] = np.arange(1000)
    batches[field.LAST_DELTA] = 0
    batches[field.FIRST_RECORD] = np.arange(1000)
    batches[field.RECORDS] = 1
    columns.batches = np.ascontiguousarray(batches)
    columns.records = np.ascontiguousarray(columns.records[:, :1000])
    columns.records[field.OFFSET] = np.arange(1000)
    columns.header_start = columns.header_start[:1001]
    return bytes(encode(columns, Magic.KAFKA))


if __name__ == "__main__":
    main()
