"""AlterReplicaLogDirs: have partitions in another folder of this node (KIP-113).

Versions 0-2. A node has one folder: a partition that is to be there is there already, and any other
path is 57. A partition that is not there is 3. Of one that is asked for twice the last path counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse


@handles(api("AlterReplicaLogDirs"), 0, 2)
async def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, call: Call
) -> AlterReplicaLogDirsResponse:
    response = api("AlterReplicaLogDirs").response
    pace = Pace()

    async def answered(
        asked: tuple[str, dict[int, str]],
    ) -> AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult:
        topic, paths = asked
        partitions = await pace.each(paths.items(), lambda each: _place(topic, *each, call))
        return response.AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)

    paths = await _paths(request, pace)
    return response(results=await pace.each_awaited(paths.items(), answered))


async def _paths(request: AlterReplicaLogDirsRequest, pace: Pace) -> dict[str, dict[int, str]]:
    """Return by topic and partition where it is to be."""
    paths: dict[str, dict[int, str]] = {}
    for folder in request.dirs:
        for topic in folder.topics:
            of_topic = paths.setdefault(topic.name, {})
            of_topic |= dict.fromkeys(await pace.counted(topic.partitions), folder.path)
            if pace.is_over():
                await pace.others()
        if pace.is_over():
            await pace.others()
    return paths


def _place(
    topic: str, index: int, path: str, call: Call
) -> AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult:
    result = api("AlterReplicaLogDirs").response.AlterReplicaLogDirPartitionResult(
        partition_index=index
    )
    try:
        _check(path, call)
        topic_by_name(call.broker, topic).partition(index)
    except Exception as error:
        result.error_code = refusal(error).code
    return result


def _check(path: str, call: Call) -> None:
    if path != str(call.broker.data_folder):
        raise RequestError(ErrorCode.LOG_DIR_NOT_FOUND, f"the node has no folder {path}")
