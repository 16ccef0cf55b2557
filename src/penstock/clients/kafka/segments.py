"""In which pieces a broker has stored a partition, and what of them it is to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.kafka.wire import api

if TYPE_CHECKING:
    from penstock.kafka.wire.messages import DescribeSegmentsResponse, HoldOffsetsRequest

_LATEST: Final = -1
_EARLIEST: Final = -2

Place: TypeAlias = tuple[str, int]
Offsets: TypeAlias = Mapping[Place, int]
ListOffsets: TypeAlias = Callable[[Mapping[Place, int]], Mapping[Place, int | None]]


class Segment(NamedTuple):
    """Messages from `base_offset` up to `end_offset`; the last segment takes more."""

    base_offset: int
    end_offset: int
    size_bytes: int


class Segments(NamedTuple):
    """A partition, and its segments, the oldest first; None where the broker does not say."""

    start_offset: int
    end_offset: int
    segments: Sequence[Segment] | None


def of_partition(found: DescribeSegmentsResponse.PartitionSegments) -> tuple[int, Segments]:
    segments = [
        Segment(each.base_offset, each.end_offset, each.size_bytes) for each in found.segments
    ]
    return found.partition_index, Segments(found.start_offset, found.end_offset, segments)


def holding(holder: str, offsets: Offsets, seconds: int) -> HoldOffsetsRequest:
    """Return the request to keep what lies from these offsets on."""
    types = api("HoldOffsets").request
    topics: dict[str, list[HoldOffsetsRequest.PartitionOffset]] = {}
    for (topic, index), offset in offsets.items():
        place = types.PartitionOffset(partition_index=index, offset=offset)
        topics.setdefault(topic, []).append(place)
    asked = [types.TopicOffsets(name=name, partitions=each) for name, each in topics.items()]
    return types(holder=holder, seconds=seconds, topics=asked)


def of_kafka(
    topic: str, partitions: Sequence[int], list_offsets: ListOffsets
) -> dict[int, Segments]:
    """What a broker that is not Penstock says of partitions: where they begin and end."""
    places = [(topic, index) for index in partitions]
    starts = list_offsets(dict.fromkeys(places, _EARLIEST))
    ends = list_offsets(dict.fromkeys(places, _LATEST))
    return {place[1]: Segments(starts[place] or 0, ends[place] or 0, None) for place in places}
