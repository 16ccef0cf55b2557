"""GET_STATS: the process, the machine and what the node holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from penstock.iggy import host
from penstock.iggy.descriptions import figures, measure
from penstock.iggy.handlers.registry import handles
from penstock.iggy.server import SERVER_VERSION
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.iggy.server import Call

_MICROSECONDS: Final = 1_000_000


@handles(Command.GET_STATS, requests.Empty)
async def get_stats(_request: requests.Empty, call: Call) -> replies.Stats:
    """Count everything; whatever the host does not tell is 0."""
    topics = call.broker.topics.all()
    await measure(call.broker, topics)
    held = await figures(topics, Pace())
    process = host.process()
    machine = host.machine(call.broker.data_folder)
    return replies.Stats(
        process_id=process.id,
        cpu_usage=process.cpu_percent(),
        total_cpu_usage=machine.cpu_percent,
        memory_usage=process.memory,
        total_memory=machine.total_memory,
        available_memory=machine.available_memory,
        run_time=int((time.monotonic() - call.client.server.started) * _MICROSECONDS),
        start_time=call.client.server.started_at_us,
        read_bytes=process.read_bytes,
        written_bytes=process.written_bytes,
        messages_size=held.size,
        streams_count=len(call.broker.namespaces.all()),
        topics_count=held.topics,
        partitions_count=held.partitions,
        segments_count=held.segments,
        messages_count=held.messages,
        clients_count=len(call.client.server.clients),
        consumer_groups_count=len(call.broker.topic_groups.all()),
        hostname=machine.hostname,
        os_name=machine.os_name,
        os_version=machine.os_version,
        kernel_version=machine.kernel_version,
        server_version=SERVER_VERSION,
        server_semver=_semver(SERVER_VERSION),
        cache_metrics_count=0,
        threads_count=process.threads,
        free_disk_space=machine.free_disk,
        total_disk_space=machine.total_disk,
    )


def _semver(version: str) -> int:
    major, minor, patch = map(int, version.split("."))
    return major * 1_000_000 + minor * 1000 + patch
