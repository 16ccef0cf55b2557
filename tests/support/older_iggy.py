"""A session of Iggy's older dialects without a socket, and what their clients have said."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from iggy_dialog import SESSIONS, STREAM, TOPIC, Dialog

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


async def of_0_8(broker: Broker) -> OlderDialog:
    """A client of apache-iggy 0.7 or 0.8, logged in."""
    dialog = OlderDialog(broker)
    await dialog.log_in()
    return dialog


async def poll(dialog: OlderDialog, offset: int, count: int, *, early: bool = False) -> bytes:
    """Ask for up to `count` messages of today's dialog's partition; return the answer's body."""
    place = named(str(STREAM.value)) + named(str(TOPIC.value))
    who = struct.pack("<BI", 1, 1) if early else b"\1\1\4" + struct.pack("<I", 1)
    partition = struct.pack("<I", 1) if early else struct.pack("<BI", 1, 0)
    status, body = await dialog.ask(
        100, who + place + partition + struct.pack("<BQIB", 1, offset, count, 0)
    )
    assert status == 0
    return body


def requests_of_2023() -> list[bytes]:
    """Every command of 2023, the first three of which make a stream, a topic and a group."""
    u32 = struct.Struct("<I").pack
    both = numeric(1) * 2
    group = both + u32(1)
    message = b"\7" * 16 + u32(14) + u32(1) + b"k" + b"\2" + u32(4) + b"blue" + u32(2) + b"hi"
    place = both + u32(1)
    polls = [struct.pack("<BQIB", kind, 1, 2, kind == 5) for kind in range(1, 6)]
    asked = [
        *((202, u32(1) + name("Shop")), (302, numeric(1) + u32(1) + u32(3) + u32(0) + name("o"))),
        (602, group),
        *((1, b""), (10, b""), (20, b""), (21, u32(1)), (22, b"")),
        *((101, both + to + 2 * message) for to in (b"\1\0", b"\2\4" + u32(1), b"\3\3key")),
        *((100, b"\1" + u32(7) + place + each) for each in polls),
        *((604, group), (100, b"\2" + u32(1) + place + polls[4]), (605, group)),
        *((121, b"\1" + u32(7) + place + bytes(8)), (120, b"\1" + u32(7) + place)),
        *((200, numeric(1)), (201, b""), (300, both), (301, numeric(1)), (600, group), (601, both)),
        *((204, numeric(1) + name("Store")), (304, both + u32(0) + name("bills"))),
        *((402, both + u32(2)), (403, both + u32(3)), (603, group), (303, both), (203, numeric(1))),
    ]
    return [request_frame(code, body) for code, body in asked]


__all__ = [
    "SESSIONS",
    "Exchange",
    "OlderDialog",
    "name",
    "named",
    "numeric",
    "of_0_8",
    "poll",
    "recorded",
    "requests_of_2023",
]
