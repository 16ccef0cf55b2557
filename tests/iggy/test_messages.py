"""Every message reads back what it wrote, and bytes that are no message are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iggy_messages import MESSAGES, messages
from penstock.iggy.wire.errors import IggyError
from penstock.iggy.wire.message import Message
from penstock.iggy.wire.replies import Confirmations, OptionDescriptions, Topics
from penstock.iggy.wire.requests import SendMessages


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_message_reads_back_what_it_wrote(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    written = message.encode()
    assert kind.decode(written) == message
    assert kind.decode(memoryview(bytes(written))).encode() == written


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_cut_off_message_is_refused_or_another_whole_one(
    kind: type[Message], data: st.DataObject
) -> None:
    written = data.draw(messages(kind)).encode()
    for size in range(len(written)):
        try:
            shorter = kind.decode(written[:size])
        except IggyError:
            continue
        # Lists, options and batches that reach to the end may as well end here.
        assert shorter.encode() == written[:size]


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@settings(max_examples=60)
@given(body=st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(kind: type[Message], body: bytes) -> None:
    try:
        kind.decode(body)
    except IggyError:
        return


@pytest.mark.parametrize("kind", [Topics, Confirmations, OptionDescriptions])
def test_counts_that_lie_are_refused_before_anything_is_read(kind: type[Message]) -> None:
    with pytest.raises(IggyError, match="4294967295 items in 8 bytes"):
        kind.decode(b"\xff" * 4 + bytes(8))


def test_batch_is_a_view_of_the_request() -> None:
    body = bytearray.fromhex("1200000002027331020274310204000000000100000000112233")
    request = SendMessages.decode(memoryview(body))
    body[-1] = 0x44
    assert bytes(request.batch) == bytes.fromhex("00112244")


def test_a_message_is_made_as_a_dataclass_is() -> None:
    class Base(Message):
        first: int
        second: str = "two"

    class Other(Base):
        third: int

    made = Base(1)
    assert (made.first, made.second) == (1, "two")
    assert Base(second="2", first=1) == Base(1, "2") != made
    assert Other(3).third == 3, "it has not become one of its parent's kind"
    for wrong in (Base, lambda: Base(1, "2", 3), lambda: Base(1, third=3)):
        with pytest.raises(TypeError):
            wrong()
