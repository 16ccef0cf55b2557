"""Which version of its dialect a client of apache-iggy 0.5 to 0.8 speaks: only its bytes say so.

A client names a version when it logs in, but it is that of its own library, and those of other
languages than Rust number theirs otherwise. So it is a first guess, and any request that lies in
the bytes of one version only decides.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from penstock.iggy.wire import requests
from penstock.iggy.wire.batch import MessageForm
from penstock.iggy.wire.dialect_l import VERSION_0_6, VERSION_0_7
from penstock.iggy.wire.dialect_l_0_5 import VERSION_0_5
from penstock.iggy.wire.errors import IggyError
from penstock.iggy.wire.fields import Reader
from penstock.iggy.wire.older import read_request

if TYPE_CHECKING:
    from penstock.iggy.wire.message import MessageT
    from penstock.iggy.wire.older import OlderDialect
    from penstock.session import Buffer

VERSIONS: Final = (VERSION_0_7, VERSION_0_6, VERSION_0_5)
"""The likeliest first."""
_OF_LIBRARIES: Final = {
    "0.7.0": VERSION_0_5,  # Rust's and Python's, as the next one.
    "0.8.0": VERSION_0_6,
    "0.6.30": VERSION_0_5,  # Java's.
}
_U32: Final = struct.Struct("<I")
_INDEX_ENTRY: Final = 16
_SIZES: Final = struct.Struct("<II")
_SIZES_AT: Final = 48
_SIZE_WITH_RESERVE: Final = 64


def of_library(version: str) -> OlderDialect:
    """Return what a client speaks, as far as the version that it names says."""
    return _OF_LIBRARIES.get(version, VERSION_0_7)


def read(
    spoken: OlderDialect, kind: type[MessageT], body: memoryview
) -> tuple[OlderDialect, MessageT]:
    """Read a request, and return with it which version it is in: `spoken` where it can be.

    Raises IggyError where it lies in the bytes of none.
    """
    if kind is requests.SendMessages:
        spoken = _version_of_send(spoken, body)
        return spoken, read_request(kind, spoken.layout(kind), Reader(body))
    tried = []
    for version in (spoken, *VERSIONS):
        layout = version.layout(kind)
        if layout in tried:
            continue
        tried.append(layout)
        reader = Reader(body)
        try:
            request = read_request(kind, layout, reader)
        except IggyError:
            continue
        if not reader.remaining:
            return version, request
    return spoken, read_request(kind, spoken.layout(kind), Reader(body))


def _version_of_send(spoken: OlderDialect, body: memoryview) -> OlderDialect:
    """Return the version whose messages have headers as long as the first one's is."""
    sent = requests.SendMessages.decode(body)
    form = _form(sent.batch, sent.messages_count)
    if form is spoken.form:
        return spoken
    return VERSION_0_7 if form is MessageForm.WITH_RESERVE else VERSION_0_6


def _form(messages: Buffer, count: int) -> MessageForm:
    first = count * _INDEX_ENTRY
    if count == 0 or len(messages) < first + _SIZES_AT + _SIZES.size:
        return MessageForm.WITH_RESERVE
    (end,) = _U32.unpack_from(messages, 4)
    headers, payload = _SIZES.unpack_from(messages, first + _SIZES_AT)
    has_reserve = end - headers - payload == _SIZE_WITH_RESERVE
    return MessageForm.WITH_RESERVE if has_reserve else MessageForm.WITHOUT_RESERVE
