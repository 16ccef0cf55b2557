"""An array of structs of numbers may be given as rows, and is the same on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.broker.transactions.aborted_rows import ROW
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
async def test_rows_and_structs_are_encoded_alike(version: int, count: int) -> None:
    numbers = [(number - 1, number << 40) for number in range(count)]
    structs = [
        RESPONSE.AbortedTransaction(producer_id=each, first_offset=first) for each, first in numbers
    ]
    expected = b"".join(RESPONSE.encode(message(structs), version))
    content = b"".join(ROW.pack(*each) for each in numbers)
    rows = message(Rows(content, ROW.size))
    assert b"".join(RESPONSE.encode(rows, version)) == expected
    assert b"".join(await RESPONSE.encode_in_steps(rows, version)) == expected
