"""Identifiers, consumers, partitioning and strategies: the forms that are legal and no others."""

from __future__ import annotations

import pytest
from hypothesis import given

from iggy_messages import consumers, identifiers, partitionings, strategies
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.fields import Block, Reader
from penstock.iggy.wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from penstock.xxh32 import xxh32


@given(identifiers | consumers | partitionings | strategies)
def test_block_reads_back_what_it_wrote_and_leaves_the_rest(block: Block) -> None:
    out = bytearray()
    block.write(out)
    reader = Reader(out + b"rest")
    assert type(block).read(reader) == block
    assert bytes(reader.rest()) == b"rest"


@pytest.mark.parametrize(
    ("kind", "written", "code"),
    [
        (Identifier, "0104000000", ErrorCode.INVALID_COMMAND),
        (Identifier, "010300000000", ErrorCode.INVALID_FORMAT),
        (Identifier, "0200", ErrorCode.INVALID_FORMAT),
        (Identifier, "030161", ErrorCode.INVALID_COMMAND),
        (Identifier, "0202ff00", ErrorCode.INVALID_UTF8),
        (Consumer, "03010400000000", ErrorCode.INVALID_COMMAND),
        (Consumer, "", ErrorCode.INVALID_COMMAND),
        (Partitioning, "0101", ErrorCode.INVALID_KEY_VALUE_LENGTH),
        (Partitioning, "0203000000", ErrorCode.INVALID_KEY_VALUE_LENGTH),
        (Partitioning, "0300", ErrorCode.INVALID_KEY_VALUE_LENGTH),
        (Partitioning, "0400", ErrorCode.INVALID_COMMAND),
        (PollingStrategy, "000000000000000000", ErrorCode.INVALID_COMMAND),
        (PollingStrategy, "0100000000000000", ErrorCode.INVALID_COMMAND),
    ],
)
def test_what_is_not_legal_is_refused(kind: type[Block], written: str, code: ErrorCode) -> None:
    with pytest.raises(IggyError) as refused:
        kind.read(Reader(bytes.fromhex(written)))
    assert refused.value.code is code


def test_xxh32_is_the_published_one() -> None:
    assert xxh32(b"") == 0x02CC5D05
    assert xxh32(b"hello world") == 0xCEBB6622
    assert xxh32(b"key-1") == 962816521
    assert xxh32(b"1") == 3068971186
    assert xxh32(b"127.0.0.1:50000") == 163361442
    assert xxh32(b"Nobody inspects the spammish repetition") == 0xE2293B2F
