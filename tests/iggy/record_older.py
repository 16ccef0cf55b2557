"""Record what an older client of apache-iggy and a broker say to each other, into `golden/older`.

`python record_older.py CLIENT_PYTHON`, where the Python that is named has the wheel of a version
from 0.5 to 0.8. A frame is a line: C or S for who sent it, and its bytes in hexadecimal.
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


async def session(client_python: str) -> list[str]:
    """Have the client do all that it can through a relay that writes down every frame."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder))
        broker.start()
        try:
            host, port = broker.iggy.split(":")

            async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
                async with contextlib.AsyncExitStack() as stack:
                    stack.enter_context(contextlib.suppress(asyncio.CancelledError))
                    tasks = await stack.enter_async_context(asyncio.TaskGroup())
                    tasks.create_task(copy(reader, upstream_writer, "C", 4, lines))
                    tasks.create_task(copy(upstream_reader, writer, "S", 8, lines))

            server = await asyncio.start_server(relay, "127.0.0.1", 0)
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            client = await asyncio.create_subprocess_exec(
                client_python, str(SUPPORT / "older_iggy_client.py"), address
            )
            assert await client.wait() == 0
            server.close()
        finally:
            broker.end()
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


if __name__ == "__main__":
    version = subprocess.check_output([sys.argv[1], "-c", VERSION], text=True).strip()
    recorded = asyncio.run(session(sys.argv[1]))
    (FOLDER / f"apache-iggy-{version}.hex").write_text("\n".join(recorded) + "\n")
