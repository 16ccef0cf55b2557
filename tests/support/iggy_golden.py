"""Frames that apache-iggy's client and a broker said to each other; see record_golden.py."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from penstock.iggy.wire.commands import COMMAND_OF, Command, Operation
from penstock.iggy.wire.frame import HEADER_SIZE, RequestHeader, parse_request

_FOLDER = Path(__file__).parents[1] / "iggy" / "golden"


class Exchange(NamedTuple):
    """A request and its answer."""

    command: Command
    request: bytes
    answer: bytes

    @property
    def header(self) -> RequestHeader:
        return parse_request(self.request)

    @property
    def body(self) -> bytes:
        return self.request[HEADER_SIZE:]


def _command(frame: bytes) -> Command:
    header = parse_request(frame)
    if header.operation == Operation.REGISTER:
        return Command.LOGIN_REGISTER
    if header.operation == Operation.NON_REPLICATED:
        return Command(header.code)
    return COMMAND_OF[Operation(header.operation)]


def _read() -> list[Exchange]:
    exchanges = []
    for file in sorted(_FOLDER.glob("*.hex")):
        lines = [line.split() for line in file.read_text().splitlines()]
        for (client, request), (server, answer) in zip(lines[::2], lines[1::2], strict=True):
            assert (client, server) == ("C", "S"), "requests and answers take turns"
            sent = bytes.fromhex(request)
            exchanges.append(Exchange(_command(sent), sent, bytes.fromhex(answer)))
    return exchanges


EXCHANGES = _read()
