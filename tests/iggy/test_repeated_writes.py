"""Goal: a write that comes again on its session is answered as it was, and is not done again."""

from __future__ import annotations

from iggy_dialog import CLIENT, STREAM, TOPIC, Dialog, producer_batch
from penstock.broker.broker import Broker
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire import frame, requests
from penstock.iggy.wire.commands import Command, Operation
from penstock.iggy.wire.errors import ErrorCode
from penstock.iggy.wire.frame import EvictionReason
from penstock.iggy.wire.identifiers import Identifier, Partitioning


def write(operation: Operation, body: bytes, number: int) -> bytes:
    header = frame.RequestHeader(CLIENT, bytes(16), 0, number, operation, 1, 0)
    return b"".join(frame.build_request(header, body))


def sent(*payloads: bytes, number: int) -> bytes:
    batch = memoryview(producer_batch(*payloads))
    to = (STREAM, TOPIC, Partitioning.partition(0))
    request = requests.SendMessages(22, *to, len(payloads), batch)
    return write(Operation.SEND_MESSAGES, bytes(request.encode()), number)


async def test_a_send_that_comes_again_is_stored_once(broker: Broker, dialog: Dialog) -> None:
    partition = find_topic(broker, STREAM, TOPIC).partition(0)
    first = await dialog.send(sent(b"a", b"b", number=10))
    assert await dialog.send(sent(b"a", b"b", number=10)) == first
    assert partition.end_offset == 2
    # What has another number, or another content under the same one, is another send.
    for number, payloads in ((11, (b"a", b"b")), (11, (b"c",)), (0, (b"d",)), (0, (b"d",))):
        before = partition.end_offset
        await dialog.send(sent(*payloads, number=number))
        assert partition.end_offset == before + len(payloads)


async def test_reads_between_do_not_matter_and_another_login_does(
    broker: Broker, dialog: Dialog
) -> None:
    partition = find_topic(broker, STREAM, TOPIC).partition(0)
    await dialog.send(sent(b"a", number=10))
    await dialog.ask(Command.PING)
    await dialog.send(sent(b"a", number=10))
    assert partition.end_offset == 1
    await dialog.log_in()
    await dialog.send(sent(b"a", number=10))
    assert partition.end_offset == 2


async def test_other_writes_that_come_again_are_answered_as_they_were(dialog: Dialog) -> None:
    created = bytes(requests.CreateStream("again", {}).encode())
    first = await dialog.send(write(Operation.CREATE_STREAM, created, 20))
    assert await dialog.send(write(Operation.CREATE_STREAM, created, 20)) == first
    refused = await dialog.send(write(Operation.CREATE_STREAM, created, 21))
    code = int(ErrorCode.STREAM_NAME_ALREADY_EXISTS).to_bytes(4, "little")
    assert refused[frame.HEADER_SIZE :][-4:] == code
    # What was refused did nothing, and may succeed when it comes again.
    await dialog.ask(Command.DELETE_STREAM, requests.StreamRequest(Identifier("again")))
    assert await dialog.send(write(Operation.CREATE_STREAM, created, 21)) != refused


async def test_what_was_answered_at_length_is_only_said_to_be_done(dialog: Dialog) -> None:
    body = bytes(requests.CreateTopic(STREAM, 100, "wide", {}).encode())
    await dialog.send(write(Operation.CREATE_TOPIC, body, 30))
    again = await dialog.send(write(Operation.CREATE_TOPIC, body, 30))
    code = int(ErrorCode.REQUEST_ALREADY_APPLIED).to_bytes(4, "little")
    assert again[frame.HEADER_SIZE :][-4:] == code


async def test_no_other_connection_speaks_for_a_session(broker: Broker, dialog: Dialog) -> None:
    other = Dialog(broker)
    answer = await other.send(sent(b"a", number=10))
    assert (answer[60], answer[-1]) == (frame.FrameKind.EVICTION, EvictionReason.NO_SESSION)
    assert (await other.ask(Command.GET_STREAMS)).status == ErrorCode.UNAUTHENTICATED
    other.session.close()
