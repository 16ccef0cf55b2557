"""A connection to one broker of Pulsar, on which one thing is asked after another.

What answers to no question is kept for whom it is: messages for who receives them at the moment,
receipts for the producer that sent.
"""

from __future__ import annotations

import itertools
import select
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from penstock.clients.access import Access, LoginError, Token, connect, read_into
from penstock.pulsar.wire.frames import (
    Frame,
    encode_payload_command,
    frame_size,
    parse_frame,
)
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandPong,
    ServerError,
)
from penstock.session import PeerError

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection

    from penstock.pulsar.wire.pulsar_api_pb2 import CommandError, CommandSendError
    from penstock.session import Buffer

CLIENT: Final = "penstock"
MESSAGE_BYTES: Final = 1 << 28
"""A message of more is none that a broker takes."""

_PROTOCOL_VERSION: Final = 21
_REFUSED_LOGINS: Final = frozenset(
    {ServerError.AuthenticationError, ServerError.AuthorizationError}
)
LATER: Final = frozenset({ServerError.ServiceNotReady, ServerError.TooManyRequests})
"""What may go well a moment later."""
_LATER_SENT: Final = LATER | {ServerError.PersistenceError}
_RECEIPTS: Final = frozenset({BaseCommand.SEND_RECEIPT, BaseCommand.SEND_ERROR})
_MOVED: Final = frozenset({BaseCommand.CLOSE_CONSUMER, BaseCommand.CLOSE_PRODUCER})
_LARGEST_MESSAGE: Final = 5 << 20
"""What a broker takes that does not say."""


class RefusedError(Exception):
    """The broker answered with an error, one of Pulsar's own."""

    def __init__(self, code: ServerError.ValueType, message: str) -> None:
        self.code = code
        first_line = message.partition("\n")[0]
        super().__init__(f"{ServerError.Name(code)}: {first_line[:300]}")


class BrokerConnection:
    """To one broker. It connects when it is made, and is closed by a failure for good."""

    def __init__(self, servers: str, behind: str, access: Access, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._numbers = itertools.count(1)
        self._receipts: defaultdict[int, deque[BaseCommand]] = defaultdict(deque)
        self._socket: socket.socket | None = connect(servers, timeout_s, access.tls)
        hello = CommandConnect(client_version=CLIENT, protocol_version=_PROTOCOL_VERSION)
        if behind:
            hello.proxy_to_broker_url = behind
        if isinstance(access.login, Token):
            hello.auth_method_name = "token"
            hello.auth_data = access.login.token.encode()
        try:
            self.send(BaseCommand(type=BaseCommand.CONNECT, connect=hello))
            connected = self._hear(BaseCommand.CONNECTED).connected
            self.largest_message = connected.max_message_size or _LARGEST_MESSAGE
        except RefusedError as error:
            self.close()
            if error.code in _REFUSED_LOGINS:
                raise LoginError(f"{servers} does not let us in: {error}") from error
            raise
        except OSError:
            self.close()
            raise

    @property
    def is_closed(self) -> bool:
        return self._socket is None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def next_id(self) -> int:
        return next(self._numbers)

    def ask(self, command: BaseCommand) -> BaseCommand:
        """Send a request and return its answer; messages that come before it are dropped."""
        number = self.next_id()
        _, asked = command.ListFields()[-1]
        asked.request_id = number
        self.send(command)
        while True:
            answer = self._read(self._timeout_s).command
            said = answer.ListFields()[-1][1]
            if answer.type == BaseCommand.ERROR and said.request_id == number:
                raise _refusal(answer.error, LATER)
            if answer.type != BaseCommand.MESSAGE and getattr(said, "request_id", None) == number:
                return answer

    def receive(self, consumer_id: int, timeout_s: float) -> Frame:
        """Return the next message of a consumer."""
        while True:
            frame = self._read(timeout_s)
            command = frame.command
            if command.type == BaseCommand.MESSAGE and command.message.consumer_id == consumer_id:
                return frame

    def receipt(self, producer_id: int, sequence: int) -> None:
        """Return when the receipt of a producer's entry is there, which is the next to come."""
        heard = self._receipts[producer_id]
        while not heard:
            self._read(self._timeout_s)
        if self.has_receipt(producer_id, sequence):
            heard.popleft()
            return
        self.close()
        if heard[0].type == BaseCommand.SEND_ERROR:
            raise _refusal(heard[0].send_error, _LATER_SENT)
        raise ConnectionError("the broker confirms another message than was sent")

    def has_receipt(self, producer_id: int, sequence: int) -> bool:
        """Whether the receipt has come, also where the connection was closed behind it."""
        heard = self._receipts[producer_id]
        return bool(heard) and (
            heard[0].type == BaseCommand.SEND_RECEIPT
            and heard[0].send_receipt.sequence_id == sequence
        )

    def catch_up(self) -> None:
        """Answer what came while nobody listened; raises OSError where the broker has gone.

        A broker closes a connection on which its pings have no answer.
        """
        while self._socket is not None:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            if not poll.poll(0):
                return
            self._read_any(self._timeout_s)

    def send(self, command: BaseCommand, entry: Buffer = b"") -> None:
        if self._socket is None:
            raise ConnectionError("the broker closed the connection")
        try:
            self._socket.sendall(encode_payload_command(command, len(entry)))
            if entry:
                self._socket.sendall(entry)
        except OSError:
            self.close()
            raise

    def _moved(self) -> ConnectionError:
        """Have all who use this connection look for their topics anew."""
        self.close()
        return ConnectionError("the broker gave a topic to another one")

    def _hear(self, kind: BaseCommand.Type.ValueType) -> BaseCommand:
        command = self._read(self._timeout_s).command
        if command.type == BaseCommand.ERROR:
            raise RefusedError(command.error.error, command.error.message)
        if command.type != kind:
            raise ConnectionError("what answers does not speak Pulsar's protocol")
        return command

    def _read(self, timeout_s: float) -> Frame:
        """Return the next frame that is no ping; raises OSError."""
        while True:
            frame = self._read_any(timeout_s)
            if frame.command.type != BaseCommand.PING:
                return frame

    def _read_any(self, timeout_s: float) -> Frame:
        """Return the next frame; a ping is answered, and a receipt is kept. Raises OSError."""
        if self._socket is None:
            raise ConnectionError("the broker closed the connection")
        try:
            self._socket.settimeout(timeout_s)
            frame = parse_frame(_read_frame(self._socket), is_answer=True)
        except PeerError as error:
            self.close()
            raise ConnectionError(f"the broker's answer: {error}") from error
        except OSError:
            self.close()
            raise
        command = frame.command
        if command.type == BaseCommand.PING:
            self.send(BaseCommand(type=BaseCommand.PONG, pong=CommandPong()))
        elif command.type in _RECEIPTS:
            self._receipts[command.ListFields()[-1][1].producer_id].append(command)
        elif command.type in _MOVED:
            raise self._moved()
        return frame


def _refusal(
    said: CommandError | CommandSendError, later: Collection[ServerError.ValueType]
) -> Exception:
    error = RefusedError(said.error, said.message)
    return ConnectionError(str(error)) if said.error in later else error


def _read_frame(connection: socket.socket) -> memoryview:
    head = bytearray(8)
    read_into(connection, memoryview(head))
    size = frame_size(memoryview(head), MESSAGE_BYTES)
    assert size is not None
    frame = memoryview(bytearray(size))
    frame[: len(head)] = head
    read_into(connection, frame[len(head) :])
    return frame
