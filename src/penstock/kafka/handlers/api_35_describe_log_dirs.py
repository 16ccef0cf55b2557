"""DescribeLogDirs: where the data folder is and how much each partition takes of it.

Versions 1-5; version 4 on has the size of the file system too. Without a list of topics the answer
has all. Partitions that are not there, or can't be opened, are left out, as Kafka does.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api
from penstock.requests.opening import once_open

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
    from penstock.session import Answer


@handles(api("DescribeLogDirs"), 1, 5)
def describe_log_dirs(
    request: DescribeLogDirsRequest, call: Call
) -> Answer[DescribeLogDirsResponse]:
    asked = _asked(request, call)
    partitions = [partition for _, partitions in asked for partition in partitions]
    return once_open(partitions, lambda: _answer(asked, call))


def _asked(request: DescribeLogDirsRequest, call: Call) -> list[tuple[Topic, list[Partition]]]:
    topics = call.broker.topics
    if request.topics is None:
        return [(topic, topic.partitions) for topic in topics.all()]
    found = [(topics.by_kafka_name(asked.topic), set(asked.partitions)) for asked in request.topics]
    return [
        (topic, [each for each in topic.partitions if each.index in wanted])
        for topic, wanted in found
        if topic is not None
    ]


def _answer(asked: list[tuple[Topic, list[Partition]]], call: Call) -> DescribeLogDirsResponse:
    response = api("DescribeLogDirs").response
    folder = call.broker.data_folder.absolute()
    space = shutil.disk_usage(folder)
    directory = response.DescribeLogDirsResult(
        log_dir=str(folder),
        topics=[_describe(topic, partitions) for topic, partitions in asked],
        total_bytes=space.total,
        usable_bytes=space.free,
    )
    return response(results=[directory])


def _describe(
    topic: Topic, partitions: Iterable[Partition]
) -> DescribeLogDirsResponse.DescribeLogDirsTopic:
    response = api("DescribeLogDirs").response
    return response.DescribeLogDirsTopic(
        name=topic.name.kafka,
        partitions=[
            response.DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=partition.size_bytes,
                offset_lag=0,
                is_future_key=False,
            )
            for partition in partitions
            if partition.is_open
        ],
    )
