"""An array of structs of numbers may be given by columns, and is the same on the wire."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from penstock.kafka.wire import api
from penstock.kafka.wire.primitives import Rows

RESPONSE = api("Fetch").response


def message(aborted: Any) -> Any:
    partition = RESPONSE.PartitionData(
        partition_index=3, aborted_transactions=aborted, records=b"records"
    )
    return RESPONSE(responses=[RESPONSE.FetchableTopicResponse(topic="t", partitions=[partition])])


@pytest.mark.parametrize("version", range(4, 19))
@pytest.mark.parametrize("count", [0, 1, 64, 65, 300])
async def test_columns_and_structs_are_encoded_alike(version: int, count: int) -> None:
    ids = array("q", range(-1, count - 1))
    firsts = array("q", [number << 40 for number in range(count)])
    structs = [
        RESPONSE.AbortedTransaction(producer_id=each, first_offset=first)
        for each, first in zip(ids, firsts, strict=True)
    ]
    expected = b"".join(RESPONSE.encode(message(structs), version))
    rows = message(Rows(ids, firsts))
    assert b"".join(RESPONSE.encode(rows, version)) == expected
    assert b"".join(await RESPONSE.encode_in_steps(rows, version)) == expected
