"""One blocking connection to a broker: requests in the newest version that both sides know."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Self

from penstock.clients.access import (
    OPEN,
    Access,
    LoginError,
    Password,
    connect,
    read_exactly,
    read_into,
)
from penstock.clients.kafka.sasl import log_in
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
    import socket
    from collections.abc import Mapping

    from penstock.kafka.wire import AnyApi, Api

API_VERSIONS: Final = api("ApiVersions")
SASL_AUTHENTICATE: Final = api("SaslAuthenticate")
SASL_HANDSHAKE: Final = api("SaslHandshake")

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
    """Connects when it is first used, and again after a failure. Raises OSError.

    Raises LoginError where the broker does not take the log-in.
    """

    def __init__(
        self, servers: str, client_id: str, timeout_s: float, access: Access = OPEN
    ) -> None:
        self.timeout_ms = round(timeout_s * 1000)
        self._servers = servers
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._access = access
        self._socket: socket.socket | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        self._correlation_ids = itertools.count(1)

    def beside(self, server: str) -> Self:
        """Return a connection to another broker of the same cluster."""
        return type(self)(server, self._client_id, self._timeout_s, self._access)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def versions(self) -> Mapping[int, tuple[int, int]]:
        """First and last version that the broker offers, by API key."""
        self._connected()
        return self._versions

    def send(
        self, api: Api[Request, Response], request: Request, newest: int | None = None
    ) -> Response:
        """Send a request, in no newer version than `newest`, and return the response.

        Without it topics are named by their names.

        Raises KafkaError UNSUPPORTED_VERSION.
        """
        return self._exchange(api, self._version(api, newest), request)

    def post(
        self, api: Api[Request, Response], request: Request, newest: int | None = None
    ) -> Posted[Request, Response]:
        """Send a request whose answer is collected later, behind those of the ones before it."""
        version = self._version(api, newest)
        return Posted(api, version, self._send(api, version, request))

    def collect(self, posted: Posted[Request, Response]) -> Response:
        """Return the answer of the oldest request that was posted."""
        return self._answer(posted.api, posted.version, posted.correlation_id)

    def send_unanswered(self, api: Api[Request, Response], request: Request) -> None:
        """Send a request that the broker does not answer. Raises KafkaError as `send` does."""
        self._send(api, self._version(api), request)

    def _version(self, api: AnyApi, newest: int | None = None) -> int:
        """The newest version of an API that both sides know."""
        first, last = self.versions().get(api.key, (0, -1))
        by_name = LAST_BY_NAME.get(api.name, api.versions.last)
        version = min(last, by_name if newest is None else newest)
        if version < first:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"the broker does not offer {api.name}")
        return version

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = connect(self._servers, self._timeout_s, self._access.tls)
            response = self._exchange(API_VERSIONS, 0, API_VERSIONS.request())
            check(response.error_code)
            self._versions = {
                each.api_key: (each.min_version, each.max_version) for each in response.api_keys
            }
            if isinstance(self._access.login, Password):
                self._log_in(self._access.login)
        return self._connected_socket()

    def _connected_socket(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionError("the broker closed the connection")
        return self._socket

    def _log_in(self, login: Password) -> None:
        """Show who we are; raises LoginError, after which nothing is connected."""
        try:
            self._agree_on(login.mechanism)
            log_in(login, lambda sent: self._authenticated(login, sent))
        except LoginError:
            self.close()
            raise

    def _agree_on(self, mechanism: str) -> None:
        asked = SASL_HANDSHAKE.request(mechanism=mechanism)
        answer = self._exchange(SASL_HANDSHAKE, 1, asked)
        if answer.error_code != ErrorCode.NONE:
            offered = ", ".join(answer.mechanisms) or "none"
            raise LoginError(
                f"{self._servers} does not offer log-in by {mechanism}; it offers {offered}"
            )

    def _authenticated(self, login: Password, sent: bytes) -> bytes:
        asked = SASL_AUTHENTICATE.request(auth_bytes=sent)
        answer = self._exchange(SASL_AUTHENTICATE, 1, asked)
        if answer.error_code != ErrorCode.NONE:
            code = KafkaError(answer.error_code, answer.error_message)
            raise LoginError(f"{self._servers} does not let {login.user!r} in: {code}")
        return answer.auth_bytes

    def _exchange(self, api: Api[Request, Response], version: int, request: Request) -> Response:
        return self._answer(api, version, self._send(api, version, request))

    def _answer(self, api: Api[Request, Response], version: int, correlation_id: int) -> Response:
        try:
            answered, response = decode_response(
                api, version, _read_frame(self._connected_socket())
            )
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


def _read_frame(connection: socket.socket) -> memoryview:
    head = read_exactly(connection, 4)
    size = frame_size(head, KAFKA_RESPONSE_BYTES)
    assert size is not None
    frame = bytearray(size)
    frame[:4] = head
    read_into(connection, memoryview(frame)[4:])
    return memoryview(frame)
