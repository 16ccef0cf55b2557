"""DescribeLogDirs: where the data folder is and how much each partition takes of it.

Versions 0-5; version 4 on has the size of the file system too. Without a list of topics the answer
has all. Partitions that are not there, or of which the log can't be read, are left out, as Kafka
does. No log is opened for it.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse


@handles(api("DescribeLogDirs"), 0, 5)
async def describe_log_dirs(request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
    pace = Pace()
    asked = await _asked(request, call, pace)
    every = (partition for _, partitions in asked for partition in partitions)
    await call.broker.topics.measure(every)
    response = api("DescribeLogDirs").response
    folder = call.broker.data_folder
    space = shutil.disk_usage(folder)
    directory = response.DescribeLogDirsResult(
        log_dir=str(folder),
        topics=await pace.each_awaited(asked, lambda each: _describe(*each, pace)),
        total_bytes=space.total,
        usable_bytes=space.free,
    )
    return response(results=[directory])


async def _asked(
    request: DescribeLogDirsRequest, call: Call, pace: Pace
) -> list[tuple[Topic, list[Partition]]]:
    topics = call.broker.topics
    if request.topics is None:
        return await pace.each(topics.all(), lambda topic: (topic, [*topic.partitions]))
    found = []
    for asked in request.topics:
        topic = topics.by_kafka_name(asked.topic)
        if topic is not None:
            numbers = await pace.counted(asked.partitions)
            is_there = range(len(topic.partitions))
            wanted = sorted(number for number in numbers if number in is_there)
            found.append((topic, [topic.partitions[number] for number in wanted]))
        if pace.is_over():
            await pace.others()
    return found


async def _describe(
    topic: Topic, partitions: list[Partition], pace: Pace
) -> DescribeLogDirsResponse.DescribeLogDirsTopic:
    response = api("DescribeLogDirs").response
    return response.DescribeLogDirsTopic(
        name=topic.name.kafka,
        partitions=await pace.each(
            ((each.index, each.summary) for each in partitions if each.summary is not None),
            lambda each: response.DescribeLogDirsPartition(
                partition_index=each[0],
                partition_size=each[1].size_bytes,
                offset_lag=0,
                is_future_key=False,
            ),
        ),
    )
