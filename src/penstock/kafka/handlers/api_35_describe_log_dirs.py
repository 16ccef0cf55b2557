"""DescribeLogDirs: where the data folder is and how much each partition takes of it.

Versions 1-5; version 4 on has the size of the file system too. Without a list of topics the answer
has all. Partitions that are not there are left out, as Kafka does.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse


@handles(api("DescribeLogDirs"), 1, 5)
def describe_log_dirs(request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
    response = api("DescribeLogDirs").response
    folder = call.broker.data_folder.absolute()
    space = shutil.disk_usage(folder)
    if request.topics is None:
        topics = [_describe(topic, topic.partitions) for topic in call.broker.topics.all()]
    else:
        topics = [topic for asked in request.topics for topic in _look_up(asked, call)]
    directory = response.DescribeLogDirsResult(
        log_dir=str(folder), topics=topics, total_bytes=space.total, usable_bytes=space.free
    )
    return response(results=[directory])


def _look_up(
    asked: DescribeLogDirsRequest.DescribableLogDirTopic, call: Call
) -> Iterable[DescribeLogDirsResponse.DescribeLogDirsTopic]:
    topic = call.broker.topics.by_kafka_name(asked.topic)
    if topic is not None:
        yield _describe(
            topic, [each for each in topic.partitions if each.index in asked.partitions]
        )


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
        ],
    )
