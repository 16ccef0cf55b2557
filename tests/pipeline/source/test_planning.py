from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.pipeline.source.dividing import TASK_BYTES, Extent
from penstock.pipeline.source.errors import DataLossError, SourceError
from penstock.pipeline.source.offsets import EARLIEST, Offsets, TopicIds, TopicPartition
from penstock.pipeline.source.options import OptionError, parse
from penstock.pipeline.source.planning import DataFolder, Planner

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@dataclass
class Broker:
    """A broker of a few numbers."""

    logs: dict[TopicPartition, tuple[int, int]] = field(
        default_factory=lambda: {A0: (0, 100), A1: (20, 50)}
    )
    folder: DataFolder | None = None
    held: Offsets = field(default_factory=dict)
    ids: TopicIds = field(default_factory=dict)

    late: dict[TopicPartition, int | None] = field(default_factory=dict)
    """Of each partition, the first offset of the time that a test asks for."""
    stored: dict[TopicPartition, list[Extent]] = field(default_factory=dict)

    def topics_like(self, pattern: re.Pattern[str]) -> list[str]:
        names = sorted({each.topic for each in self.logs})
        return [name for name in names if pattern.fullmatch(name)]

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {source: self.late.get(source) for source in times}

    def extents(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, list[Extent]]:
        return {source: self.stored.get(source, []) for source in sources}

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        counts = {t: sum(1 for each in self.logs if each.topic == t) for t in topics}
        return {topic: count for topic, count in counts.items() if count}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    def ends(self, sources: Sequence[TopicPartition], end: int) -> Offsets:
        known = [source for source in sources if source in self.logs]
        return {source: self.logs[source][0 if end == EARLIEST else 1] for source in known}

    def hold(self, starts: Offsets) -> None:
        self.held = starts

    def data_folder(self) -> DataFolder | None:
        return self.folder

    def folders(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Path]:
        return {source: Path(str(source)) for source in sources}


def planner(broker: Broker, *, streaming: bool = False, **options: str) -> Planner:
    given = {"penstock.bootstrap.servers": "b:1", "subscribe": "a", "minPartitions": "1", **options}
    if "assign" in options or "subscribePattern" in options:
        del given["subscribe"]
    return Planner(parse(given, streaming=streaming), broker)


def spans(plan: Planner, start: Offsets, end: Offsets) -> list[tuple[TopicPartition, int, int]]:
    return [tuple(task.range) for task in plan.tasks(start, end)]  # type: ignore[misc]  # of three


def test_a_batch_reads_from_end_to_end() -> None:
    plan = planner(Broker())
    assert spans(plan, plan.starting(), plan.ending()) == [(A0, 0, 100), (A1, 20, 50)]


def test_what_is_to_be_read_is_held() -> None:
    broker = Broker()
    planner(broker).tasks({A0: 30}, {A0: 90, A1: 50})
    assert broker.held == {A0: 30, A1: 0}


def test_offsets_can_be_given_with_ends_among_them() -> None:
    plan = planner(
        Broker(),
        startingOffsets='{"a": {"0": 10, "1": -2}}',
        endingOffsets='{"a": {"0": 30, "1": -1}}',
    )
    assert spans(plan, plan.starting(), plan.ending()) == [(A0, 10, 30), (A1, 20, 50)]


def test_given_offsets_must_name_each_partition() -> None:
    with pytest.raises(OptionError, match="missing a-1, unknown b-0"):
        planner(Broker(), startingOffsets='{"a": {"0": 1}, "b": {"0": 1}}').starting()


def test_an_unknown_topic_is_named() -> None:
    with pytest.raises(SourceError, match="no topic named nosuch at b:1"):
        planner(Broker(), subscribe="a,nosuch").starting()


def test_an_unknown_partition_is_named() -> None:
    expected = "^topic a has 2 partitions, counted from 0, so assign can't name partition 2$"
    with pytest.raises(SourceError, match=expected):
        planner(Broker(), assign='{"a": [2]}').starting()


def test_assigned_partitions_are_read_alone() -> None:
    plan = planner(Broker(), assign='{"a": [1]}')
    assert spans(plan, plan.starting(), plan.ending()) == [(A1, 20, 50)]


def test_offsets_that_are_gone_end_the_read() -> None:
    with pytest.raises(DataLossError, match=r"a-1 .* offset 5 up to 50, but holds 20 up to 50"):
        planner(Broker()).tasks({A0: 0, A1: 5}, {A0: 100, A1: 50})


def test_offsets_past_the_end_end_the_read() -> None:
    with pytest.raises(DataLossError, match="holds 0 up to 100"):
        planner(Broker()).tasks({A0: 0}, {A0: 101})


def test_what_is_gone_can_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    plan = planner(Broker(), failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        found = spans(plan, {A0: 0, A1: 5, B0: 3}, {A0: 120, A1: 50, B0: 9})
    assert found == [(A0, 0, 100), (A1, 20, 50)]
    assert len(caplog.records) == 3


def test_a_range_wholly_before_the_log_is_empty_where_that_is_allowed() -> None:
    assert spans(planner(Broker(), failOnDataLoss="false"), {A1: 1}, {A1: 9}) == []


def test_a_stream_goes_on_with_partitions_that_were_added() -> None:
    broker = Broker()
    plan = planner(broker, streaming=True, startingOffsets="earliest")
    start = plan.starting()
    broker.logs[TopicPartition("a", 2)] = (0, 7)
    end = plan.following(start, plan.latest())
    assert spans(plan, start, end)[-1] == (TopicPartition("a", 2), 0, 7)


def test_a_batch_of_a_stream_is_limited_new_partitions_included() -> None:
    plan = planner(Broker({A0: (0, 100), A1: (20, 120)}), streaming=True)
    assert plan.limited({A0: 0}, plan.latest(), 20) == {A0: 10, A1: 30}


def test_a_stream_notices_a_topic_that_begins_anew() -> None:
    plan = planner(Broker(), streaming=True)
    with pytest.raises(DataLossError, match="a-0 was read up to offset 200"):
        plan.following({A0: 200}, plan.latest())


def test_a_stream_may_wait_for_a_topic_that_begins_anew() -> None:
    plan = planner(Broker(), streaming=True, failOnDataLoss="false")
    assert plan.following({A0: 200}, plan.latest()) == {A0: 200, A1: 50}


@pytest.mark.parametrize("subscribed", [{"subscribe": "a,b"}, {"subscribePattern": "[ab]"}])
def test_a_topic_that_is_gone_is_told_from_one_that_is_not_read_any_more(
    subscribed: dict[str, str],
) -> None:
    plan = planner(Broker(), **subscribed)
    with pytest.raises(DataLossError, match=r"b-0 .* is gone: there is no topic b any more"):
        plan.following({A0: 50, B0: 1}, plan.latest())
    plan = planner(Broker())
    with pytest.raises(DataLossError, match=r"b-0 was read up to offset 1 and is not to be read"):
        plan.following({A0: 50, B0: 1}, plan.latest())


def test_given_offsets_of_an_earlier_topic_of_that_name_are_noticed() -> None:
    broker = Broker({A0: (0, 100)}, ids={"a": "new"})
    starting = '{"a": {"0": 10, "id": "%s"}}'
    assert planner(broker, startingOffsets=starting % "new").starting() == {A0: 10}
    with pytest.raises(OptionError, match=r"startingOffsets is of another topic .*: a-0"):
        planner(broker, startingOffsets=starting % "old").starting()


def test_small_partitions_share_tasks_unless_their_number_is_asked_for() -> None:
    logs = {TopicPartition("a", index): (0, 20) for index in range(1_000)}
    base = {"penstock.bootstrap.servers": "b:1", "subscribe": "a"}
    counts = []
    for given in ({}, {"minPartitions": "7"}, {"maxRecordsPerPartition": "40"}):
        plan = Planner(parse({**base, **given}, streaming=False), Broker(logs))
        shares = plan.shares(*plan.batch())
        assert [task.range.source for share in shares for task in share] == list(logs)
        counts.append(len(shares))
    assert counts[0] < 500
    assert counts[1:] == [1_000, 500]


def test_tasks_know_where_the_segments_lie() -> None:
    folder = DataFolder(Path("data"), "id")
    (task,) = planner(Broker({A0: (0, 5)}, folder)).tasks({A0: 0}, {A0: 5})
    assert (task.data_folder, task.folder) == (folder, Path("a-0"))


def test_the_wire_is_used_where_it_is_asked_for() -> None:
    broker = Broker({A0: (0, 5)}, DataFolder(Path("data"), "id"))
    (task,) = planner(broker, readMode="wire").tasks({A0: 0}, {A0: 5})
    assert (task.data_folder, task.folder) == (None, None)


def test_reading_files_only_needs_files() -> None:
    with pytest.raises(SourceError, match="can't be read from here"):
        planner(Broker(), readMode="log").tasks({A0: 0}, {A0: 5})


def test_an_offset_beyond_the_end_is_named() -> None:
    starting = '{"a": {"0": 101, "1": 50}}'
    with pytest.raises(OptionError, match=r"startingOffsets .* a-0 begins at 101 and ends at 100"):
        planner(Broker(), startingOffsets=starting).starting()
    plan = planner(Broker(), startingOffsets=starting, failOnDataLoss="false")
    assert spans(plan, *plan.batch()) == []


def test_a_batch_runs_forward() -> None:
    ends = {
        "startingOffsets": '{"a": {"0": 50, "1": 20}}',
        "endingOffsets": '{"a": {"0": 40, "1": 30}}',
    }
    with pytest.raises(OptionError, match="a-0 would be read from offset 50 back to 40"):
        planner(Broker(), **ends).batch()


def test_topics_are_those_that_match_as_a_whole() -> None:
    broker = Broker({A0: (0, 5), B0: (0, 7), TopicPartition("ab", 0): (0, 9)})
    plan = planner(broker, subscribePattern="a|b")
    assert spans(plan, *plan.batch()) == [(A0, 0, 5), (B0, 0, 7)]
    with pytest.raises(SourceError, match=r"subscribePattern 'x.*' matches the whole name of no"):
        planner(broker, subscribePattern="x.*").batch()


def test_a_stream_takes_up_topics_that_begin_to_match() -> None:
    broker = Broker({A0: (0, 5)})
    plan = planner(broker, streaming=True, subscribePattern="[ab]")
    broker.logs[B0] = (0, 7)
    assert plan.latest() == {A0: 5, B0: 7}


def test_a_read_begins_and_ends_by_time() -> None:
    broker = Broker(late={A0: 40, A1: 25})
    times = '{"a": {"0": 1000, "1": 2000}}'
    plan = planner(broker, startingOffsetsByTimestamp=times)
    assert spans(plan, *plan.batch()) == [(A0, 40, 100), (A1, 25, 50)]
    plan = planner(broker, endingTimestamp="1000")
    assert spans(plan, *plan.batch()) == [(A0, 0, 40), (A1, 20, 25)]
    with pytest.raises(OptionError, match=r"startingOffsetsByTimestamp must name each .* a-1"):
        planner(broker, startingOffsetsByTimestamp='{"a": {"0": 1}}').starting()


def test_a_time_that_no_message_has_is_an_error_or_the_end() -> None:
    broker = Broker(late={A0: 40, A1: None})
    with pytest.raises(OptionError, match=r"startingTimestamp: a-1 holds no message .* to latest"):
        planner(broker, startingTimestamp="1000").starting()
    plan = planner(broker, startingTimestamp="1000", startingOffsetsByTimestampStrategy="latest")
    assert plan.starting() == {A0: 40, A1: 50}
    assert planner(broker, endingTimestamp="1000").ending() == {A0: 40, A1: 50}


def test_a_large_partition_is_cut_by_its_bytes() -> None:
    broker = Broker({A0: (0, 100_000)}, stored={A0: [Extent(0, 100_000, 10 * TASK_BYTES)]})
    options = {"penstock.bootstrap.servers": "b:1", "subscribe": "a"}
    tasks = Planner(parse(options, streaming=False), broker).tasks({A0: 0}, {A0: 100_000})
    assert len(tasks) == 10


def test_tasks_name_the_topics_id() -> None:
    (task,) = planner(Broker({A0: (0, 5)}, ids={"a": "one"})).tasks({A0: 0}, {A0: 5})
    assert task.topic_id == "one"
