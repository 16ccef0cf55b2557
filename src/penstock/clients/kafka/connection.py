"""One blocking connection to a broker: requests in the newest version that both sides know."""

from __future__ import annotations

import itertools
import socket
from typing import TYPE_CHECKING, Final

from penstock.kafka.wire import (
    ErrorCode,
    MalformedMessageError,
    api,
    decode_response,
    encode_request,
    frame_size,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kafka.wire import Struct

RESPONSE_BYTES_MAX: Final = 1 << 30

LAST_BY_NAME: Final = {"Produce": 12, "Fetch": 12, "OffsetFetch": 9}
"""The last versions that name a topic by its name and not by its id, which would have to be looked
up first and again after every re-creation."""


class KafkaError(Exception):
    """The broker answered with an error; `code` is the protocol's own."""

    def __init__(self, code: int, detail: str | None = None) -> None:
        self.code = ErrorCode(code) if code in _CODES else ErrorCode.UNKNOWN_SERVER_ERROR
        super().__init__(f"{self.code.name}: {detail}" if detail else self.code.name)


_CODES: Final = frozenset(ErrorCode)


def check(code: int, detail: str | None = None) -> None:
    """Raise KafkaError unless the code says that all went well."""
    if code != ErrorCode.NONE:
        raise KafkaError(code, detail)


class ClientConnection:
    """Connects when it is first used, and again after a failure. Raises OSError."""

    def __init__(self, servers: str, client_id: str, timeout_s: float) -> None:
        self.timeout_ms = round(timeout_s * 1000)
        self._servers = servers
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        self._correlation_ids = itertools.count(1)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def versions(self) -> Mapping[int, tuple[int, int]]:
        """First and last version that the broker offers, by API key."""
        self._connected()
        return self._versions

    def send(self, name: str, request: Struct) -> Struct:
        """Send a request and return the response. Raises KafkaError UNSUPPORTED_VERSION."""
        key = api(name).key
        first, last = self.versions().get(key, (0, -1))
        known = api(name).versions
        version = min(last, LAST_BY_NAME.get(name, known.last), known.last)
        if version < first:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"the broker does not offer {name}")
        return self._exchange(name, version, request)

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = _connect(self._servers, self._timeout_s)
            response = self._exchange("ApiVersions", 0, api("ApiVersions").request())
            check(response.error_code)
            self._versions = {
                each.api_key: (each.min_version, each.max_version) for each in response.api_keys
            }
        return self._socket

    def _exchange(self, name: str, version: int, request: Struct) -> Struct:
        connection = self._connected()
        correlation_id = next(self._correlation_ids) & 0x7FFFFFFF
        parts = encode_request(api(name), version, correlation_id, self._client_id, request)
        expects_answer = name != "Produce" or request.acks != 0
        try:
            connection.sendall(b"".join(parts))
            if not expects_answer:
                return _unanswered()
            answered, response = decode_response(api(name), version, _read_frame(connection))
            if answered != correlation_id:
                raise ConnectionError(f"answer {answered} came for request {correlation_id}")
        except (OSError, MalformedMessageError) as error:
            self.close()
            if isinstance(error, MalformedMessageError):
                raise ConnectionError(f"the broker's answer to {name}: {error}") from error
            raise
        return response


def _connect(servers: str, timeout_s: float) -> socket.socket:
    failure: OSError | None = None
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            connection = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        except ValueError:
            raise ConnectionError(f"{server!r}: write host:port") from None
        except OSError as error:
            failure = error
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
    raise ConnectionError(f"no broker answers at {servers}: {failure}") from failure


def _read_frame(connection: socket.socket) -> memoryview:
    head = _read(connection, bytearray(4))
    size = frame_size(head, RESPONSE_BYTES_MAX)
    assert size is not None
    frame = bytearray(size)
    frame[:4] = head
    _read(connection, memoryview(frame)[4:])
    return memoryview(frame)


def _read(connection: socket.socket, buffer: bytearray | memoryview) -> bytearray | memoryview:
    view = memoryview(buffer)
    while view:
        count = connection.recv_into(view)
        if count == 0:
            raise ConnectionError("the broker closed the connection")
        view = view[count:]
    return buffer


def _unanswered() -> Struct:
    """What a Produce request with acks 0 returns: an empty success."""
    response = api("Produce").response
    topic = response.TopicProduceResponse(
        partition_responses=[response.PartitionProduceResponse(base_offset=-1)]
    )
    return response(responses=[topic])
