"""What a port speaks that does not answer in Kafka's protocol: to be asked after a failure."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from penstock.iggy.wire import frame as iggy
from penstock.iggy.wire.commands import Command, Operation
from penstock.pulsar.wire.frames import encode_command
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandConnect

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER_SECONDS: Final = 1.0
ANSWER_BYTES: Final = 64
_CLIENT: Final = "penstock-cli"


def _asked_in_pulsar() -> bytes:
    hello = CommandConnect(client_version=_CLIENT, protocol_version=21)
    return encode_command(BaseCommand(type=BaseCommand.CONNECT, connect=hello))


def _asked_in_iggy() -> bytes:
    header = iggy.RequestHeader(
        _CLIENT.encode().ljust(16), bytes(16), 0, 1, Operation.NON_REPLICATED, 0, Command.PING
    )
    return b"".join(iggy.build_request(header, b""))


def _is_pulsar(answer: bytes) -> bool:
    # Total size, command size, and a command whose first field is its type.
    return answer[8:10] in (b"\x08\x03", b"\x08\x0e")  # CONNECTED, ERROR


def _is_iggy(answer: bytes) -> bool:
    # Sixteen bytes that are reserved, and further on a frame's kind.
    return answer[:16] == bytes(16) and answer[60:61] == bytes([iggy.FrameKind.REPLY])


_QUESTIONS: Final[dict[str, tuple[Callable[[], bytes], Callable[[bytes], bool]]]] = {
    "Pulsar": (_asked_in_pulsar, _is_pulsar),
    "Iggy": (_asked_in_iggy, _is_iggy),
}


def spoken_at(server: str) -> str | None:
    """Return which protocol `host:port` answers in, "Pulsar" or "Iggy"; None where in neither."""
    host, _, port = server.strip().rpartition(":")
    for name, (question, is_answer) in _QUESTIONS.items():
        try:
            with socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS) as asked:
                asked.sendall(question())
                answer = asked.recv(ANSWER_BYTES)
        except (OSError, ValueError):
            continue
        if is_answer(answer):
            return name
    return None
