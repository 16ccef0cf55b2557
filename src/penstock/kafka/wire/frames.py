"""Frames: the size before each message, and the headers of requests and responses."""

from __future__ import annotations

from struct import Struct as Packer
from struct import pack_into
from typing import Any, NamedTuple

from penstock.kafka.wire.apis import AnyApi, Api, Request, Response, api_by_key
from penstock.kafka.wire.primitives import MalformedMessageError, skip_tagged_fields
from penstock.kafka.wire.structs import Struct
from penstock.limits import KAFKA_ELEMENTS_AT_ONCE
from penstock.session import Buffer

_SIZE = Packer(">i")
_REQUEST_HEAD = Packer(">ihhi")
_REQUEST_HEAD_BYTES = _REQUEST_HEAD.size
_RESPONSE_HEAD = Packer(">ii")
_LENGTH = Packer(">h")


class RequestHeader(NamedTuple):
    """What comes before a request's body. `version` may be one that the API does not have."""

    api: AnyApi
    version: int
    correlation_id: int
    client_id: str | None
    body_start: int


def frame_size(head: Buffer, limit: int) -> int | None:
    """The size of the frame that begins with `head`, its size field counted in; None before.

    Raises MalformedMessageError for a size that is negative or above `limit`.
    """
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack_from(head)
    if not 0 <= size <= limit:
        raise MalformedMessageError(f"frame of {size} bytes, where 0 to {limit} are allowed")
    return _SIZE.size + int(size)


def decode_request_header(frame: Buffer) -> RequestHeader:
    """The header of a request; `frame` is whole and begins with its size.

    Raises MalformedMessageError, for an API key that is not known too.
    """
    if len(frame) < _REQUEST_HEAD_BYTES:
        raise MalformedMessageError(f"a frame of {len(frame)} bytes has no request header")
    _, key, version, correlation_id = _REQUEST_HEAD.unpack_from(frame)
    api = api_by_key(key)
    if api is None:
        raise MalformedMessageError(f"API key {key} is not known")
    header_version = api.request_header_version(version)
    position = _REQUEST_HEAD_BYTES
    client_id = None
    if header_version >= 1:
        client_id, position = _decode_client_id(frame, position)
    if header_version >= 2:
        position = _skip_header_tags(frame, position)
    return RequestHeader(api, version, correlation_id, client_id, position)


def decode_request(frame: Buffer) -> tuple[RequestHeader, Struct]:
    """Header and body of a request; as `decode_request_header` and `MessageType.decode`."""
    header = decode_request_header(frame)
    return header, header.api.request.decode(frame, header.version, header.body_start)


def encode_request(
    api: Api[Request, Any],
    version: int,
    correlation_id: int,
    client_id: str | None,
    request: Request,
) -> list[Buffer]:
    """The parts of a request's frame, its size included. As `MessageType.encode`."""
    head = bytearray(_REQUEST_HEAD.pack(0, api.key, version, correlation_id))
    header_version = api.request_header_version(version)
    if header_version >= 1:
        raw = (client_id or "").encode()
        head += _LENGTH.pack(-1 if client_id is None else len(raw)) + raw
    if header_version >= 2:
        head.append(0)
    return _with_size(api.request.encode(request, version, head))


def encode_response(
    api: Api[Any, Response], version: int, correlation_id: int, response: Response
) -> list[Buffer]:
    """The parts of a response's frame, its size included. As `MessageType.encode`.

    Raises ManyElementsError for one that is to be encoded in steps.
    """
    head = _response_head(api, version, correlation_id)
    return _with_size(
        api.response.encode(response, version, head, elements_max=KAFKA_ELEMENTS_AT_ONCE)
    )


async def encode_response_in_steps(
    api: Api[Any, Response], version: int, correlation_id: int, response: Response
) -> list[Buffer]:
    """As `encode_response`, however many elements there are, between the turns of others."""
    head = _response_head(api, version, correlation_id)
    return _with_size(await api.response.encode_in_steps(response, version, head))


def _response_head(api: AnyApi, version: int, correlation_id: int) -> bytearray:
    head = bytearray(_RESPONSE_HEAD.pack(0, correlation_id))
    if api.response_header_version(version) == 1:
        head.append(0)
    return head


def correlation_id_of(frame: Buffer) -> int:
    """The correlation id of a response, by which its request is found. MalformedMessageError."""
    if len(frame) < _RESPONSE_HEAD.size:
        raise MalformedMessageError(f"a frame of {len(frame)} bytes has no response header")
    _, correlation_id = _RESPONSE_HEAD.unpack_from(frame)
    return int(correlation_id)


def decode_response(api: Api[Any, Response], version: int, frame: Buffer) -> tuple[int, Response]:
    """Correlation id and body of the answer to a request of that version. MalformedMessageError."""
    correlation_id = correlation_id_of(frame)
    position = _RESPONSE_HEAD.size
    if api.response_header_version(version) == 1:
        position = _skip_header_tags(frame, position)
    return correlation_id, api.response.decode(frame, version, position)


def _with_size(parts: list[Buffer]) -> list[Buffer]:
    pack_into(">i", parts[0], 0, sum(map(len, parts)) - _SIZE.size)
    return parts


def _decode_client_id(frame: Buffer, position: int) -> tuple[str | None, int]:
    start = position + 2
    left = len(frame) - start
    if left < 0:
        raise MalformedMessageError("the request header is cut off in its client id")
    (length,) = _LENGTH.unpack_from(frame, position)
    if length == -1:
        return None, start
    if length < 0 or length > left:
        raise MalformedMessageError(f"client id of {length} bytes, {left} are left")
    end = start + length
    try:
        return str(frame[start:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise MalformedMessageError(f"client id: {error}") from None


def _skip_header_tags(frame: Buffer, position: int) -> int:
    try:
        count = frame[position]
        return skip_tagged_fields(frame, position + 1, count) if count else position + 1
    except IndexError:
        raise MalformedMessageError("the header is cut off in its tagged fields") from None
