"""Record what an older client of apache-iggy and a broker say to each other, into `golden/older`.

`python record_older.py CLIENT_PYTHON [ADDRESS]`, where the Python that is named has the wheel of a
version from 0.5 to 0.8, and the address is that of a broker, a new Penstock where none is named.
What the file of 0.8.0 has was said by apache-iggy's own server 0.8.0. A frame is a line: C or S for
who sent it, and its bytes in hexadecimal.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(SUPPORT))

from iggy_relay import ReadFrame, recorded  # noqa: E402  # found by the line above

FOLDER = Path(__file__).parent / "golden" / "older"
VERSION = "import importlib.metadata as m; print(m.version('apache-iggy'))"


def frames(head_size: int) -> ReadFrame:
    """Return what reads the frames of one side; the size of a body ends its head."""

    async def read_frame(reader: asyncio.StreamReader) -> bytes:
        head = await reader.readexactly(head_size)
        return head + await reader.readexactly(int.from_bytes(head[-4:], "little"))

    return read_frame


def main(client_python: str, address: str | None = None) -> None:
    """Record one session, with Penstock where no other broker is named."""
    version = subprocess.check_output([client_python, "-c", VERSION], text=True).strip()

    async def play(relayed: str) -> None:
        script = str(SUPPORT / "older_iggy_client.py")
        client = await asyncio.create_subprocess_exec(client_python, script, relayed)
        assert await client.wait() == 0

    lines = recorded(play, {"C": frames(4), "S": frames(8)}, address)
    (FOLDER / f"apache-iggy-{version}.hex").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
