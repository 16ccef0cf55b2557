"""Goal: quotas are set and found as Kafka's tools do it, and clients beyond theirs wait."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from confluent_kafka import Producer

from broker_process import BrokerProcess
from kafka_dialog import TOPIC, Dialog
from patience import PATIENCE_SECONDS, lasted
from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, api
from penstock.limits import KAFKA_THROTTLE_SECONDS

Parts = list[tuple[str, str | None]]
EXACTLY, DEFAULT, ANY = range(3)


async def alter(
    dialog: Dialog, entity: Parts, *, validate_only: bool = False, **rates: float | None
) -> int:
    request = api("AlterClientQuotas").request
    entry = request.EntryData(
        entity=[request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            request.OpData(key=key, value=rate or 0.0, remove=rate is None)
            for key, rate in rates.items()
        ],
    )
    response = await dialog.ask("AlterClientQuotas", entries=[entry], validate_only=validate_only)
    code: int = response.entries[0].error_code
    return code


async def described(dialog: Dialog, *components: tuple[str, int, str | None], **fields: Any) -> Any:
    request = api("DescribeClientQuotas").request
    asked = [
        request.ComponentData(entity_type=kind, match_type=match_type, match=match)
        for kind, match_type, match in components
    ]
    response = await dialog.ask("DescribeClientQuotas", components=asked, **fields)
    if response.error_code:
        return response.error_code
    assert response.error_message == ""
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries
    ]


async def test_what_is_set_is_found(dialog: Dialog) -> None:
    assert await alter(dialog, [("client-id", "a")], producer_byte_rate=10.0) == 0
    assert await alter(dialog, [("client-id", None), ("user", "u")], consumer_byte_rate=20.0) == 0
    assert await alter(dialog, [("user", None)], validate_only=True, producer_byte_rate=1.0) == 0
    of_a = ({"client-id": "a"}, {"producer_byte_rate": 10.0})
    of_both = ({"user": "u", "client-id": None}, {"consumer_byte_rate": 20.0})
    assert await described(dialog) == [of_a, of_both]
    assert await described(dialog, ("client-id", EXACTLY, "a")) == [of_a]
    assert await described(dialog, ("client-id", DEFAULT, None)) == [of_both]
    assert await described(dialog, ("client-id", ANY, None)) == [of_a, of_both]
    assert await described(dialog, ("client-id", ANY, None), strict=True) == [of_a]
    assert await described(dialog, ("ip", ANY, None)) == []
    assert await alter(dialog, [("client-id", "a")], producer_byte_rate=None) == 0
    assert await described(dialog) == [of_both]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("planet", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, None), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACTLY, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_can_not_be_asked(
    dialog: Dialog, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    assert await described(dialog, *components) == code


@pytest.mark.parametrize(
    ("entity", "rates"),
    [
        ([], {"producer_byte_rate": 1.0}),
        ([("ip", "127.0.0.1")], {"producer_byte_rate": 1.0}),
        ([("user", "a"), ("user", "b")], {"producer_byte_rate": 1.0}),
        ([("user", "a")], {"request_percentage": 1.0}),
        ([("user", "a")], {"producer_byte_rate": 1.0, "no_such_key": 1.0}),
        ([("user", "a")], {"producer_byte_rate": 0.0}),
        ([("user", "a")], {"producer_byte_rate": float("nan")}),
        ([("user", "a")], {"producer_byte_rate": float("inf")}),
    ],
)
async def test_what_can_not_be_set(
    dialog: Dialog, entity: Parts, rates: dict[str, float | None]
) -> None:
    assert await alter(dialog, entity, **rates) == ErrorCode.INVALID_REQUEST
    assert await described(dialog) == []


def batch(size: int) -> bytearray:
    return encode_batch([Record(bytes(size), timestamp_ms=1)])


async def test_who_writes_too_much_waits_for_the_next_answer(dialog: Dialog) -> None:
    await dialog.create_topic()
    other = Dialog(dialog.broker, "other")
    assert await alter(dialog, [("client-id", "tester")], producer_byte_rate=10_000.0) == 0
    began = asyncio.get_running_loop().time()
    fields = dialog.produce_fields((0, batch(101_000)))
    response = await dialog.ask("Produce", 12, **fields)
    assert 100 < response.throttle_time_ms < 1_000
    answer = dialog.send("ApiVersions", 0)
    assert (await other.ask("Produce", 12, **fields)).throttle_time_ms == 0
    await answer
    assert lasted(began, response.throttle_time_ms / 1000)


async def test_the_answer_that_says_so_does_not_wait_itself(dialog: Dialog) -> None:
    await dialog.create_topic()
    assert await alter(dialog, [("client-id", "tester")], producer_byte_rate=1_000.0) == 0
    began = time.monotonic()
    response = await dialog.ask("Produce", 12, **dialog.produce_fields((0, batch(101_000))))
    assert response.throttle_time_ms == 1000 * KAFKA_THROTTLE_SECONDS
    assert not lasted(began, KAFKA_THROTTLE_SECONDS)


async def test_who_reads_too_much_waits_for_the_next_answer(dialog: Dialog) -> None:
    await dialog.create_topic()
    await dialog.produce(batch(110_000))
    assert await alter(dialog, [("user", None)], consumer_byte_rate=10_000.0) == 0
    response = await dialog.ask("Fetch", 12, **dialog.fetch_fields((0, 0)))
    assert 1_000 <= response.throttle_time_ms <= 1_100
    # Gone while it waits: nothing of it is left.
    waiting = dialog.send("ApiVersions", 0)
    dialog.session.close()
    await waiting


async def test_who_reads_what_is_stored_is_no_exception(dialog: Dialog) -> None:
    await dialog.create_topic()
    await dialog.produce(batch(110_000))
    assert await alter(dialog, [("user", None)], consumer_byte_rate=10_000.0) == 0
    response = await dialog.ask("FetchStored", 0, topic=TOPIC, max_bytes=1 << 20)
    assert response.throttle_time_ms >= 1_000
    dialog.session.close()


async def test_who_writes_at_offsets_is_no_exception(dialog: Dialog) -> None:
    await dialog.create_topic(penstock_importing="true")
    assert await alter(dialog, [("user", None)], producer_byte_rate=10_000.0) == 0
    fields = {"topic": TOPIC, "records": batch(110_000)}
    response = await dialog.ask("AppendAt", 0, **fields)
    assert (response.error_code, response.end_offset) == (0, 1)
    assert response.throttle_time_ms >= 1_000
    dialog.session.close()


def limit(server: BrokerProcess, client_id: str, rate: float | None) -> None:
    alter_quotas = api("AlterClientQuotas")
    request = alter_quotas.request
    operation = request.OpData(key="producer_byte_rate", value=rate or 0.0, remove=rate is None)
    entity = request.EntityData(entity_type="client-id", entity_name=client_id)
    connection = ClientConnection(server.kafka, "tool", 10)
    try:
        entry = request.EntryData(entity=[entity], ops=[operation])
        response = connection.send(alter_quotas, request(entries=[entry]))
    finally:
        connection.close()
    assert response.entries[0].error_code == 0


def test_confluent_is_told_to_wait(shared_server: BrokerProcess) -> None:
    throttled: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": shared_server.kafka,
            "client.id": "held",
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    limit(shared_server, "held", 100_000.0)
    try:
        for _ in range(22):
            producer.produce("held", bytes(50_000))
            assert producer.flush(PATIENCE_SECONDS) == 0
    finally:
        limit(shared_server, "held", None)
    assert throttled
