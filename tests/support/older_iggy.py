"""A session of Iggy's older dialects without a socket, and what their clients have said."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from iggy_dialog import SESSIONS, Dialog

if TYPE_CHECKING:
    from penstock.broker.broker import Broker

FOLDER = Path(__file__).parents[1] / "iggy" / "golden" / "older"
OK = (0, b"")


class Exchange(NamedTuple):
    """A request and its answer."""

    request: bytes
    answer: bytes

    @property
    def code(self) -> int:
        return int.from_bytes(self.request[4:8], "little")

    @property
    def body(self) -> bytes:
        return self.request[8:]


def recorded(name: str) -> list[Exchange]:
    """Return what a client and a server have said, in pairs."""
    lines = [line.split() for line in (FOLDER / f"{name}.hex").read_text().splitlines()]
    assert [who for who, _ in lines] == ["C", "S"] * (len(lines) // 2)
    frames = [bytes.fromhex(data) for _, data in lines]
    return [Exchange(*pair) for pair in zip(frames[::2], frames[1::2], strict=True)]


def request_frame(code: int, body: bytes = b"") -> bytes:
    """One request of an older dialect."""
    return struct.pack("<II", 4 + len(body), code) + body


class OlderDialog:
    """One client of 2023, or of apache-iggy 0.5 to 0.8 once it has logged in."""

    def __init__(self, broker: Broker) -> None:
        self._dialog = Dialog(broker)
        self.session = self._dialog.session

    async def send(self, built: bytes) -> bytes:
        """Have one frame answered."""
        return await self._dialog.send(built)

    async def ask(self, code: int, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request; return the status and the body of its answer."""
        answer = await self.send(request_frame(code, body))
        status, size = struct.unpack_from("<II", answer)
        assert len(answer) == 8 + size
        return status, answer[8:]

    async def log_in(self, version: str = "0.10.0", password: str = "iggy") -> None:
        """Log in as Rust's and Python's clients of 0.5 to 0.8 do."""
        said = version.encode()
        body = b"\4iggy" + name(password) + struct.pack("<I", len(said)) + said + bytes(4)
        status, user = await self.ask(38, body)
        assert status == 0, status
        assert len(user) == 4


def name(text: str) -> bytes:
    """A text behind its length."""
    return bytes([len(text)]) + text.encode()


def numeric(number: int) -> bytes:
    """An identifier by number."""
    return struct.pack("<BBI", 1, 4, number)


def named(text: str) -> bytes:
    """An identifier by name."""
    return b"\2" + name(text)


__all__ = ["SESSIONS", "Exchange", "OlderDialog", "name", "named", "numeric", "recorded"]
