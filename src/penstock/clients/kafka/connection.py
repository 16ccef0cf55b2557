"""One blocking connection to a broker: requests in the newest version that both sides know."""

from __future__ import annotations

import itertools
import socket
from typing import TYPE_CHECKING, Final, Generic, NamedTuple

from penstock.kafka.wire import (
    ErrorCode,
    MalformedMessageError,
    api,
    decode_response,
    encode_request,
    frame_size,
)
from penstock.kafka.wire.apis import Request, Response
from penstock.limits import KAFKA_RESPONSE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.kafka.wire import AnyApi, Api

API_VERSIONS: Final = api("ApiVersions")

LAST_BY_NAME: Final = {"Produce": 12, "Fetch": 12, "OffsetCommit": 9, "OffsetFetch": 9}
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


class Posted(NamedTuple, Generic[Request, Response]):
    """A request whose answer is to come."""

    api: Api[Request, Response]
    version: int
    correlation_id: int


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

    def send(self, api: Api[Request, Response], request: Request) -> Response:
        """Send a request and return the response. Raises KafkaError UNSUPPORTED_VERSION."""
        return self._exchange(api, self._version(api), request)

    def post(self, api: Api[Request, Response], request: Request) -> Posted[Request, Response]:
        """Send a request whose answer is collected later, behind those of the ones before it."""
        version = self._version(api)
        return Posted(api, version, self._send(api, version, request))

    def collect(self, posted: Posted[Request, Response]) -> Response:
        """Return the answer of the oldest request that was posted."""
        return self._answer(posted.api, posted.version, posted.correlation_id)

    def send_unanswered(self, api: Api[Request, Response], request: Request) -> None:
        """Send a request that the broker does not answer. Raises KafkaError as `send` does."""
        self._send(api, self._version(api), request)

    def _version(self, api: AnyApi) -> int:
        """The newest version of an API that both sides know."""
        first, last = self.versions().get(api.key, (0, -1))
        version = min(last, LAST_BY_NAME.get(api.name, api.versions.last), api.versions.last)
        if version < first:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"the broker does not offer {api.name}")
        return version

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = _connect(self._servers, self._timeout_s)
            response = self._exchange(API_VERSIONS, 0, API_VERSIONS.request())
            check(response.error_code)
            self._versions = {
                each.api_key: (each.min_version, each.max_version) for each in response.api_keys
            }
        return self._socket

    def _exchange(self, api: Api[Request, Response], version: int, request: Request) -> Response:
        return self._answer(api, version, self._send(api, version, request))

    def _answer(self, api: Api[Request, Response], version: int, correlation_id: int) -> Response:
        try:
            answered, response = decode_response(api, version, _read_frame(self._connected()))
            if answered != correlation_id:
                raise ConnectionError(f"answer {answered} came for request {correlation_id}")
        except (OSError, MalformedMessageError) as error:
            self.close()
            if isinstance(error, MalformedMessageError):
                raise ConnectionError(f"the broker's answer to {api.name}: {error}") from error
            raise
        return response

    def _send(self, api: Api[Request, Response], version: int, request: Request) -> int:
        """Send a request and return its correlation id."""
        connection = self._connected()
        correlation_id = next(self._correlation_ids) & 0x7FFFFFFF
        parts = encode_request(api, version, correlation_id, self._client_id, request)
        try:
            connection.sendall(b"".join(parts))
        except OSError:
            self.close()
            raise
        return correlation_id


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
    size = frame_size(head, KAFKA_RESPONSE_BYTES)
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
