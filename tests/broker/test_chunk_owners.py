"""Goal: all chunks of a message go to one consumer, and what is kept for that is little and is
counted, however long the ids are that producers give to their messages.
"""

from __future__ import annotations

import tracemalloc

from penstock.broker.reading.entries import Entry
from penstock.broker.subscriptions.selectors.chunk_owners import ChunkOwners
from penstock.limits import KIB, UNFINISHED_CHUNKED_MESSAGES
from penstock.log.header import read_header
from penstock.memory import Memory
from receivers import consumer
from stored_batches import chunk_batch


def chunk(uuid: str, number: int) -> Entry:
    batch = chunk_batch([b"a", b"b"], number, uuid)
    return Entry(read_header(batch), memoryview(batch))


def test_a_message_has_one_owner_until_its_last_chunk_came() -> None:
    owners = ChunkOwners(Memory().subscriptions)
    one, other = consumer("one"), consumer("other")
    assert owners.owner(chunk("x", 0), one) is one
    assert owners.owner(chunk("y", 0), other) is other
    assert owners.owner(chunk("x", 1), other) is one
    assert owners.owner(chunk("x", 0), other) is other
    owners.forget(other)
    assert owners.owner(chunk("y", 1), one) is one


def test_long_ids_take_no_more_than_short_ones_and_all_is_counted() -> None:
    account = Memory().subscriptions
    owners = ChunkOwners(account)
    one = consumer("one")
    owners.owner(chunk("x" * 64 * KIB, 0), one)
    tracemalloc.start()
    for number in range(UNFINISHED_CHUNKED_MESSAGES):
        owners.owner(chunk(f"{number}" + "x" * 64 * KIB, 0), one)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken <= account.used <= 4 * taken
    owners.forget(one)
    assert account.used == 0
