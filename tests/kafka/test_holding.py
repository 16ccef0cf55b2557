"""Goal: pipelines hold what they read, for a while, and no client holds more than it may."""

from __future__ import annotations

from kafka_dialog import Dialog
from penstock import limits
from penstock.clients.kafka.segments import holding
from penstock.kafka.wire import ErrorCode


async def test_offsets_are_held_and_given_back(dialog: Dialog) -> None:
    await dialog.create_topic("orders", partitions=2)
    (topic,) = dialog.broker.topics.all()
    ids = [each.id for each in topic.partitions]
    leases = dialog.broker.retention.leases

    async def hold(holder: str, offsets: dict[tuple[str, int], int], seconds: int) -> list[int]:
        asked = holding(holder, offsets, seconds)
        fields = {name: getattr(asked, name) for name in ("holder", "seconds", "topics")}
        answer = await dialog.ask("HoldOffsets", 0, **fields)
        assert 0 <= answer.seconds <= limits.RANGE_LEASE_SECONDS
        return [each.error_code for named in answer.topics for each in named.partitions]

    places = {("orders", 1): 5, ("orders", 0): -3, ("orders", 2): 1, ("missing", 0): 1}
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert await hold("x", places, 1 << 30) == [0, 0, unknown, unknown]
    assert [leases.needed_from(each) for each in ids] == [0, 5]
    too_long = "x" * (limits.RANGE_HOLDER_CHARACTERS + 1)
    assert await hold(too_long, {("orders", 0): 1}, 9) == [ErrorCode.INVALID_REQUEST]
    assert len(leases) == 2
    assert await hold("x", {}, -1) == []
    assert len(leases) == 0
