"""What a dialect is to a session: an object, chosen by a connection's first bytes.

Commands, requests and replies are the same in all dialects; how they lie in bytes is the codec's
alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from penstock.iggy.wire.dialect_v import CodecV

if TYPE_CHECKING:
    from collections.abc import Hashable

    from penstock.iggy.wire.commands import Command
    from penstock.iggy.wire.errors import IggyError
    from penstock.iggy.wire.message import MessageT
    from penstock.iggy.wire.replies import Reply
    from penstock.session import Buffer, Buffers, Encoded

AskedT = TypeVar("AskedT")
"""What a codec remembers of one request until it is answered."""


class Codec(Protocol[AskedT]):
    """One dialect, or what one connection is found to speak. It does no I/O."""

    @property
    def version(self) -> int:
        """The protocol's version: `major << 20 | minor << 10 | patch`."""

    @property
    def needs_login(self) -> bool:
        """Whether its clients can log in, and so have to."""

    @property
    def has_heartbeat(self) -> bool:
        """Whether its clients let hear of themselves, so that one who does not is gone."""

    def frame_size(self, head: Buffer) -> int | None:
        """Return the size of the frame that begins here, or None before enough of it is there.

        Raises IggyError for a size that is none, or over the limit.
        """

    def parse(self, frame: memoryview) -> AskedT:
        """Take a whole frame; raises IggyError where it is no request and can't be answered."""

    def command(self, asked: AskedT) -> Command:
        """Return what is asked for; raises IggyError."""

    def is_send(self, asked: AskedT) -> bool:
        """Whether messages are sent, which may run beside other sends of the connection."""

    def decode(self, asked: AskedT, kind: type[MessageT]) -> MessageT:
        """Return the request, of the kind that its command has; raises IggyError."""

    def repetition(self, asked: AskedT) -> Hashable | None:
        """Return what only a repetition of a write has in common with it, on one session; None
        where the dialect tells none, or for what may be done again.
        """

    def encode(self, asked: AskedT, reply: Reply) -> Encoded:
        """Return a reply's frame; what it carries of the log is not copied. A long one comes later,
        and is used up.
        """

    def encode_error(self, asked: AskedT, error: IggyError) -> Buffers | None:
        """Return the frame of a refusal; None where the dialect refuses by hanging up."""

    def addressee(self, asked: AskedT) -> bytes:
        """Return what a client calls itself, for what it hears unasked."""

    def encode_stale(self, addressee: bytes) -> Buffers:
        """Return the frame that ends the session of a client that said nothing for too long."""


AnyCodec: TypeAlias = Codec[Any]

_V: Final = CodecV()
CHOICE_BYTES: Final = 4
"""How many first bytes of a connection tell its dialect."""


def choose(head: Buffer) -> AnyCodec:
    """Return the codec of the dialect that begins with these bytes, CHOICE_BYTES or more.

    A frame of today's dialect begins with 16 zero bytes, and one of the older ones with a length of
    4 or more. Those are loaded when the first client speaks one.
    """
    if not any(head[:CHOICE_BYTES]):
        return _V
    from penstock.iggy.wire.legacy import LegacyCodec  # noqa: PLC0415  # three dialects

    return LegacyCodec()
