"""GET_SNAPSHOT: an archive that says what the broker and its machine are doing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.tasks import uninterrupted

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_SNAPSHOT, requests.GetSnapshot)
async def get_snapshot(request: requests.GetSnapshot, call: Call) -> replies.Snapshot:
    """Gather it in a thread; who comes meanwhile is refused, as by iggy-server."""
    from penstock.iggy import snapshot  # noqa: PLC0415  # zipfile; few ever ask for one

    compression = snapshot.compression_of(request.compression)
    sections = snapshot.sections_of(request.sections)
    server = call.client.server
    if server.gathers_snapshot:
        raise IggyError(ErrorCode.SNAPSHOT_FILE_COMPLETION_FAILED, "another one is under way")

    async def gather() -> bytes:
        server.gathers_snapshot = True
        try:
            return await asyncio.to_thread(snapshot.collect, sections, compression, call.broker)
        finally:
            server.gathers_snapshot = False

    # To its end, whoever leaves: there is never more than one thread of them.
    archive = await uninterrupted(gather(), "gathering a snapshot", refusals=IggyError)
    return replies.Snapshot(memoryview(archive))
