"""The APIs by name and key, each with its messages, compiled a version at a time on first use."""

from __future__ import annotations

import math
import os
import struct
import sys
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar

from penstock.kafka.wire.decoding import Decoder, SteppingDecoder, compile_decoder
from penstock.kafka.wire.encoding import Encoder, SteppingEncoder, compile_encoder
from penstock.kafka.wire.layout import Layout
from penstock.kafka.wire.primitives import MalformedMessageError
from penstock.kafka.wire.schema import Schema, StructType, Versions, parse
from penstock.kafka.wire.structs import Struct, build_classes
from penstock.limits import KAFKA_REQUEST_ELEMENTS
from penstock.pace import Pace
from penstock.session import Buffer

MESSAGES = Path(__file__).parent / "messages"

_COPIED_BYTES: Final = 1 << 20
"""The largest message that is copied to be decoded: of a large one, only its values are."""

Message = TypeVar("Message", bound=Struct)
Request = TypeVar("Request", bound=Struct)
Response = TypeVar("Response", bound=Struct)


class MessageType(Generic[Message]):
    """A request, a response or another message in all its versions.

    The classes of its structs are its attributes: `api("Produce").response.TopicProduceResponse`.
    """

    def __init__(self, schema: Schema, kind: str) -> None:
        self._schema = schema
        self.root: StructType = schema.roots[kind]
        # A response is what our own client asked for.
        self._elements_max = KAFKA_REQUEST_ELEMENTS if kind == "request" else sys.maxsize
        self._classes: dict[str, Any] = build_classes(schema.structs[kind])
        self._root_class = self._classes[self.root.name]
        for each in schema.structs[kind]:
            setattr(self, each.name, self._classes[each.name])
        self._holds_records = any(
            field.type == "records" for each in schema.structs[kind] for field in each.fields
        )
        self._decoders: dict[int, Decoder] = {}
        self._encoders: dict[int, Encoder] = {}
        self._stepping_decoders: dict[int, SteppingDecoder] = {}
        self._stepping_encoders: dict[int, SteppingEncoder] = {}

    def __call__(self, **values: Any) -> Message:
        """A message, from the fields of its outermost struct."""
        message: Message = self._root_class(**values)
        return message

    def decode(self, data: Buffer, version: int, start: int = 0) -> Message:
        """The message at `start`; what comes after it is ignored.

        Record sets are slices of `data`, so give a memoryview where they must not be copied; all
        other values are copies. Raises MalformedMessageError, and TooManyElementsError where all
        arrays have more elements together than any message may have.
        """
        return self.decode_counted(data, version, start, self._elements_max)[0]

    def decode_counted(
        self, data: Buffer, version: int, start: int, elements_max: int
    ) -> tuple[Message, int]:
        """As `decode`, with how many elements all arrays have together: at most `elements_max`."""
        decoder = self._decoders.get(version) or self._compile_decoder(version)
        copies = not self._holds_records and len(data) <= _COPIED_BYTES
        if copies and type(data) is not bytes:
            # Slices of bytes are the quickest to make strings of.
            data = bytes(data)
        try:
            message, elements_left = decoder(data, start, elements_max)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise self._malformed(version, error) from None
        return message, elements_max - elements_left

    async def decode_in_steps(self, data: Buffer, version: int, start: int) -> tuple[Message, int]:
        """As `decode`, between the turns of others; with how many elements there are."""
        decoder = self._stepping_decoders.get(version) or self._compile_stepping_decoder(version)
        try:
            message, elements_left = await decoder(data, start, self._elements_max, Pace())
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise self._malformed(version, error) from None
        return message, self._elements_max - elements_left

    def encode(
        self,
        message: Message,
        version: int,
        head: Buffer = b"",
        *,
        elements_max: int = sys.maxsize,
    ) -> list[Buffer]:
        """The parts of the message, `head` first; record data is a part of its own, uncopied.

        A value that does not fit its field is the caller's mistake and raises what Python makes
        of it (struct.error, TypeError, AttributeError). ValueError: no such version.
        ManyElementsError: all arrays have more than `elements_max` elements together.
        """
        encoder = self._encoders.get(version) or self._compile_encoder(version)
        parts: list[Buffer] = []
        encoder(message, bytearray(head), parts, elements_max)
        return parts

    async def encode_in_steps(
        self, message: Message, version: int, head: Buffer = b""
    ) -> list[Buffer]:
        """As `encode`, between the turns of others."""
        parts: list[Buffer] = []
        encoder = self._stepping_encoders.get(version) or self._compile_stepping_encoder(version)
        await encoder(message, bytearray(head), parts, Pace())
        return parts

    def _malformed(self, version: int, error: Exception) -> MalformedMessageError:
        what = f": {error}" if isinstance(error, UnicodeDecodeError) else " is cut off"
        return MalformedMessageError(f"{self.root.name} v{version}{what}")

    def _layout(self, version: int) -> Layout:
        return Layout(version, version in self._schema.flexible)

    def _compile_decoder(self, version: int) -> Decoder:
        decoder: Decoder = self._compiled_decoder(version, in_steps=False)
        self._decoders[version] = decoder
        return decoder

    def _compile_stepping_decoder(self, version: int) -> SteppingDecoder:
        decoder: SteppingDecoder = self._compiled_decoder(version, in_steps=True)
        self._stepping_decoders[version] = decoder
        return decoder

    def _compiled_decoder(self, version: int, *, in_steps: bool) -> Any:
        if version not in self._schema.versions:
            raise MalformedMessageError(f"{self.root.name} has no version {version}")
        return compile_decoder(self.root, self._layout(version), self._classes, in_steps=in_steps)

    def _compile_encoder(self, version: int) -> Encoder:
        encoder: Encoder = self._compiled_encoder(version, in_steps=False)
        self._encoders[version] = encoder
        return encoder

    def _compile_stepping_encoder(self, version: int) -> SteppingEncoder:
        encoder: SteppingEncoder = self._compiled_encoder(version, in_steps=True)
        self._stepping_encoders[version] = encoder
        return encoder

    def _compiled_encoder(self, version: int, *, in_steps: bool) -> Any:
        if version not in self._schema.versions:
            raise ValueError(f"{self.root.name} has no version {version}")
        return compile_encoder(self.root, self._layout(version), self._classes, in_steps=in_steps)


class Api(Generic[Request, Response]):
    """One of Kafka's APIs. Its schema is read on first use of anything but key and name."""

    def __init__(self, key: int, name: str, path: Path) -> None:
        self.key = key
        self.name = name
        self._path = path

    def __repr__(self) -> str:
        return f"<Kafka API {self.key} {self.name}>"

    @property
    def versions(self) -> Versions:
        """All versions there ever were."""
        return self._schema.versions

    @property
    def flexible_versions(self) -> Versions:
        """The versions with compact lengths and tagged fields."""
        return self._schema.flexible

    @cached_property
    def request(self) -> MessageType[Request]:
        """The request in all versions."""
        return MessageType(self._schema, "request")

    @cached_property
    def response(self) -> MessageType[Response]:
        """The response in all versions."""
        return MessageType(self._schema, "response")

    def request_header_version(self, version: int) -> int:
        """0: without client id, 1: with it, 2: with tagged fields too.

        A version above those known is taken for flexible (KIP-511: an ApiVersions request of an
        unknown version still has a header that can be read).
        """
        if version >= self._first_flexible:
            return 2
        return 0 if version == 0 and self.name == "ControlledShutdown" else 1

    def response_header_version(self, version: int) -> int:
        """0: the correlation id alone, 1: with tagged fields; ApiVersions always has 0, KIP-511."""
        return 1 if version >= self._first_flexible and self.name != "ApiVersions" else 0

    @cached_property
    def _first_flexible(self) -> float:
        flexible = self.flexible_versions
        return flexible.first if flexible.last >= flexible.first else math.inf

    @cached_property
    def _schema(self) -> Schema:
        return parse(self._path.read_text(encoding="utf-8"), self.name)


AnyApi: TypeAlias = Api[Any, Any]
"""An API that a key or a name found."""


def _find_apis() -> list[AnyApi]:
    """One API a file that is numbered, such as `00_produce.schema`."""
    found: list[AnyApi] = []
    for file_name in sorted(os.listdir(MESSAGES)):  # noqa: PTH208  # a Path each costs start-up time
        key, _, rest = file_name.removesuffix(".schema").partition("_")
        if key.isdigit():
            found.append(Api(int(key), protocol_name(rest), MESSAGES / file_name))
    return sorted(found, key=lambda each: each.key)


def protocol_name(file_name: str) -> str:
    """The name in the protocol of what a file of messages is called after."""
    return "".join(word.capitalize() for word in file_name.split("_"))


APIS: tuple[AnyApi, ...] = tuple(_find_apis())
"""All APIs, in the order of their keys."""

_BY_KEY = {each.key: each for each in APIS}
_BY_NAME = {each.name: each for each in APIS}


def api(name: str) -> AnyApi:
    """The API of this name, written as in the protocol: `api("ListOffsets")`. Raises KeyError."""
    return _BY_NAME[name]


def api_by_key(key: int) -> AnyApi | None:
    """The API with this key, or None."""
    return _BY_KEY.get(key)
