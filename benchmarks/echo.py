"""The least that a server on the broker's event loop does: it cuts what comes into frames, which
begin with their length, and answers each with itself. Prints its port.
"""

from __future__ import annotations

import asyncio
from typing import cast

import uvloop


class Echo(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        answers, at = [], 0
        while (end := at + 4 + int.from_bytes(data[at : at + 4], "big")) <= len(data):
            answers.append(data[at:end])
            at = end
        self._rest = data[at:]
        self._transport.writelines(answers)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
