"""FLUSH_UNSAVED_BUFFER: bring what a partition holds to stable storage.

apache-iggy 0.9.0 itself refuses this command; here it does what it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.FLUSH_UNSAVED_BUFFER, requests.FlushUnsavedBuffer)
async def flush_unsaved_buffer(request: requests.FlushUnsavedBuffer, call: Call) -> None:
    """Return when all that was written before is flushed; `fsync` makes no difference."""
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = topic.partition(request.partition_id)
    await partition.opened()
    await partition.flushed()
