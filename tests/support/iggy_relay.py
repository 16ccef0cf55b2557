"""A relay between a client of Iggy and a broker that writes down every frame."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from broker_process import BrokerProcess

ReadFrame: TypeAlias = Callable[[asyncio.StreamReader], Awaitable[bytes]]
"""Returns one whole frame. Raises asyncio.IncompleteReadError where there is none any more."""


def recorded(
    play: Callable[[str], Awaitable[None]],
    reads: Mapping[str, ReadFrame],
    address: str | None = None,
) -> list[str]:
    """Return what a client, C, and a broker, S, say to each other while `play` has the client talk
    to the address that it is given: C or S, and the bytes of a frame in hexadecimal.

    `reads` are the frames of each. The broker is a new Penstock where no other one is named.
    """
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder))
        if address is None:
            broker.start()
        try:
            return asyncio.run(_relayed(play, reads, address or broker.iggy))
        finally:
            broker.end()


async def _relayed(
    play: Callable[[str], Awaitable[None]], reads: Mapping[str, ReadFrame], address: str
) -> list[str]:
    lines: list[str] = []
    host, port = address.split(":")

    async def pass_on(who: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                frame = await reads[who](reader)
                lines.append(f"{who} {frame.hex()}")
                writer.write(frame)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(contextlib.suppress(asyncio.CancelledError))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            tasks.create_task(pass_on("C", reader, upstream_writer))
            tasks.create_task(pass_on("S", upstream_reader, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    await play(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    server.close()
    return lines
