"""Record what an older client of apache-iggy and a broker say to each other, into `golden/older`.

`python record_older.py CLIENT_PYTHON [ADDRESS]`, where the Python that is named has the wheel of a
version from 0.5 to 0.8, and the address is that of a broker, a new Penstock where none is named.
What the file of 0.8.0 has was said by apache-iggy's own server 0.8.0. A frame is a line: C or S for
who sent it, and its bytes in hexadecimal.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(SUPPORT))

from broker_process import BrokerProcess  # noqa: E402  # found by the line above

FOLDER = Path(__file__).parent / "golden" / "older"
VERSION = "import importlib.metadata as m; print(m.version('apache-iggy'))"


async def session(client_python: str, address: str) -> list[str]:
    """Have the client do all that it can through a relay that writes down every frame."""
    lines: list[str] = []
    host, port = address.split(":")

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(contextlib.suppress(asyncio.CancelledError))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            tasks.create_task(copy(reader, upstream_writer, "C", 4, lines))
            tasks.create_task(copy(upstream_reader, writer, "S", 8, lines))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    relayed = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = await asyncio.create_subprocess_exec(
        client_python, str(SUPPORT / "older_iggy_client.py"), relayed
    )
    assert await client.wait() == 0
    server.close()
    return lines


async def copy(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    who: str,
    head_size: int,
    lines: list[str],
) -> None:
    """Pass whole frames on until the sender stops; the size of a body ends its head."""
    while True:
        try:
            head = await reader.readexactly(head_size)
        except asyncio.IncompleteReadError:
            writer.close()
            return
        frame = head + await reader.readexactly(int.from_bytes(head[-4:], "little"))
        lines.append(f"{who} {frame.hex()}")
        writer.write(frame)


def main(client_python: str, address: str | None = None) -> None:
    """Record one session, with Penstock where no other broker is named."""
    version = subprocess.check_output([client_python, "-c", VERSION], text=True).strip()
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder))
        if address is None:
            broker.start()
        try:
            lines = asyncio.run(session(client_python, address or broker.iggy))
        finally:
            broker.end()
    (FOLDER / f"apache-iggy-{version}.hex").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
