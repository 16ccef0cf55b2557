"""Dialects, logins and what a session says to requests that are wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iggy_dialog import CLIENT, STREAM, TOPIC, Dialog, Transport, polled_batches, producer_batch
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.iggy.handlers import HANDLERS
from penstock.iggy.handlers.unavailable import UNAVAILABLE
from penstock.iggy.wire import frame, requests
from penstock.iggy.wire.commands import COMMAND_OF, NON_REPLICATED, Command, Operation
from penstock.iggy.wire.errors import ErrorCode
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    PollingKind,
    PollingStrategy,
)
from penstock.iggy.wire.message import Message
from penstock.log import LocalLog, LogFailedError
from penstock.session import PeerError


@pytest.fixture
def dialog(broker: Broker) -> Dialog:
    return Dialog(broker)


async def test_first_command_tells_the_older_dialects_apart(broker: Broker, dialog: Dialog) -> None:
    ping = bytes.fromhex("0400000001000000")
    assert (await dialog.send(ping)).hex() == "0000000000000000"
    login = bytes.fromhex("1c00000026000000 0469676779 0469676779 06000000302e31302e30 00000000")
    assert (await dialog.send(login)).hex() == "0000000004000000" + "00000000"
    create_stream_of_2023 = bytes.fromhex("0b000000ca0000000100000002 7331")
    early = Dialog(broker)
    assert (await early.send(ping)).hex() == "0000000000000000"
    assert (await early.send(create_stream_of_2023)).hex() == "0000000000000000"
    assert broker.namespaces.by_stream_id(0) is not None, "its number 1"
    early.session.close()


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01", b"\x03\0\0\0", b"\xff" * 4]
)
def test_bytes_of_another_protocol_are_no_frame(dialog: Dialog, head: bytes) -> None:
    with pytest.raises(PeerError, match="no frame of Iggy's"):
        dialog.session.frame_size(memoryview(head))


async def test_frame_that_no_client_sends_ends_the_connection(dialog: Dialog) -> None:
    reply = bytearray(frame.HEADER_SIZE)
    reply[48:52] = frame.HEADER_SIZE.to_bytes(4, "little")
    reply[60] = frame.FrameKind.REPLY
    with pytest.raises(PeerError, match="no request"):
        await dialog.send(reply)


async def test_login_is_judged_and_may_be_tried_again(dialog: Dialog) -> None:
    reason = frame.EvictionReason
    assert (await dialog.log_in("guessed")).evicted == reason.INVALID_CREDENTIALS
    assert (await dialog.log_in(version=10 << 10)).evicted == reason.INCOMPATIBLE_PROTOCOL
    assert (await dialog.log_in(version=12 << 10)).evicted == reason.INCOMPATIBLE_PROTOCOL
    token = requests.LoginRegisterWithToken(0x2C00, "rust-sdk", "0.11.0", "a token", "")
    answer = await dialog.ask(Command.LOGIN_REGISTER, token, Operation.REGISTER)
    assert answer.evicted == reason.INVALID_TOKEN
    answer = await dialog.ask(Command.LOGIN_REGISTER, b"\1", Operation.REGISTER)
    assert answer.evicted == reason.MALFORMED_LOGIN
    for nameless in (("", "0.11.0", "iggy"), ("rust-sdk", "", "iggy"), ("rust-sdk", "0.11.0", "")):
        login = requests.LoginRegister(0x2C00, *nameless, "iggy", "")
        answer = await dialog.ask(Command.LOGIN_REGISTER, login, Operation.REGISTER)
        assert answer.evicted == reason.MALFORMED_LOGIN
    for command in (Command.LOGIN_USER, Command.LOGIN_WITH_PERSONAL_ACCESS_TOKEN):
        answer = await dialog.ask(command, b"", Operation.NON_REPLICATED)
        assert answer.evicted == reason.MALFORMED_LOGIN
    first = await dialog.log_in(version=(11 << 10) + 7)
    second = await dialog.log_in()
    assert first.body.hex() == "00000000 00000000 0100000000000000 002c0000 05302e392e30".replace(
        " ", ""
    )
    assert second.body == first.body, "it is the same session"


async def test_version_of_a_login_is_judged_before_what_follows_it(dialog: Dialog) -> None:
    reason = frame.EvictionReason
    versions = {10 << 10: reason.INCOMPATIBLE_PROTOCOL, 11 << 10: reason.MALFORMED_LOGIN}
    for version, expected in versions.items():
        begun = requests.ClientVersion(version, "go-sdk", "0.9.0").encode()
        for body in (begun, begun + b"\xff", begun + b"\4iggy\4iggy"):
            answer = await dialog.ask(Command.LOGIN_REGISTER, bytes(body), Operation.REGISTER)
            assert answer.evicted == expected
        cut = bytes(begun[:-1])
        answer = await dialog.ask(Command.LOGIN_REGISTER, cut, Operation.REGISTER)
        assert answer.evicted == reason.MALFORMED_LOGIN


async def test_what_follows_a_login_is_ignored(dialog: Dialog) -> None:
    login = requests.LoginRegister(0x2C00, "node-sdk", "0.10.0", "iggy", "iggy", "a test")
    body = bytes(login.encode()) + b"more"
    assert not (await dialog.ask(Command.LOGIN_REGISTER, body, Operation.REGISTER)).evicted


async def test_what_follows_a_request_is_ignored(dialog: Dialog) -> None:
    await dialog.set_up()
    group = requests.CreateConsumerGroup(STREAM, TOPIC, "g")
    reader = Consumer(ConsumerKind.CONSUMER, Identifier("reader"))
    first = PollingStrategy(PollingKind.FIRST)
    asked: list[tuple[Command, Message]] = [
        (Command.PING, requests.Empty()),
        (Command.GET_STREAMS, requests.Empty()),
        (Command.GET_TOPIC, requests.TopicRequest(STREAM, TOPIC)),
        (Command.CREATE_CONSUMER_GROUP, group),
        (Command.CREATE_PARTITIONS, requests.CreatePartitions(STREAM, TOPIC, 1)),
        (Command.POLL_MESSAGES, requests.PollMessages(reader, STREAM, TOPIC, 0, first, 1, False)),
        (Command.DELETE_TOPIC, requests.TopicRequest(STREAM, TOPIC)),
        (Command.DELETE_STREAM, requests.StreamRequest(STREAM)),
    ]
    for command, request in asked:
        answer = await dialog.ask(command, bytes(request.encode()) + bytes(4))
        assert (answer.status, answer.evicted) == (0, 0), command
        assert command in NON_REPLICATED or not answer.rejected, command
    answer = await dialog.ask(Command.GET_STREAM, requests.StreamRequest(STREAM))
    assert answer.body == b""


async def test_node_client_deletes_a_topic(dialog: Dialog) -> None:
    await dialog.set_up()
    # Its DELETE_TOPIC ends in the number of partitions.
    body = bytes.fromhex("020173 020174 01000000")
    assert not (await dialog.ask(Command.DELETE_TOPIC, body)).rejected
    assert (await dialog.ask(Command.GET_TOPIC, body)).body == b""


@pytest.mark.parametrize("rest", [b"\0", b"\2", b"\2\1\0\0\0a", bytes(4)])
async def test_what_follows_a_name_is_options_and_has_to_be_whole(
    dialog: Dialog, rest: bytes
) -> None:
    await dialog.log_in()
    body = bytes(requests.CreateStream("s", {}).encode()) + rest
    assert (await dialog.ask(Command.CREATE_STREAM, body)).rejected == ErrorCode.INVALID_COMMAND


async def test_without_login_reads_hear_a_status_and_writes_end_the_session(
    dialog: Dialog,
) -> None:
    assert (await dialog.ask(Command.PING)) == (0, b"", 0)
    assert (await dialog.ask(Command.GET_STREAMS)).status == ErrorCode.UNAUTHENTICATED
    answer = await dialog.ask(Command.CREATE_STREAM, requests.CreateStream("s", {}))
    assert answer.evicted == frame.EvictionReason.NO_SESSION
    await dialog.log_in()
    assert (await dialog.ask(Command.GET_STREAMS)).status == 0
    for _ in range(2):
        assert (await dialog.ask(Command.LOGOUT_USER)) == (0, b"", 0)
        assert (await dialog.ask(Command.GET_STREAMS)).status == ErrorCode.UNAUTHENTICATED


async def test_who_logs_in_again_stays_in_its_groups(dialog: Dialog) -> None:
    await dialog.set_up(2)
    await dialog.ask(
        Command.CREATE_CONSUMER_GROUP, requests.CreateConsumerGroup(STREAM, TOPIC, "g")
    )
    group = requests.ConsumerGroupRequest(STREAM, TOPIC, Identifier("g"))
    await dialog.ask(Command.JOIN_CONSUMER_GROUP, group)
    first = await dialog.ask(Command.SYNC_CONSUMER_GROUP, group)
    await dialog.log_in()
    assert await dialog.ask(Command.SYNC_CONSUMER_GROUP, group) == first
    assert (await dialog.log_in("guessed")).evicted
    assert await dialog.ask(Command.SYNC_CONSUMER_GROUP, group) == first
    await dialog.ask(Command.LOGOUT_USER)
    await dialog.log_in()
    assert (await dialog.ask(Command.SYNC_CONSUMER_GROUP, group)).body == b""


async def test_operations_and_codes_that_are_none(dialog: Dialog) -> None:
    await dialog.log_in()
    for operation in (0, 64, 127, 150, 255):
        answer = await dialog.ask(Command.PING, b"", operation)
        assert answer.evicted == frame.EvictionReason.INVALID_REQUEST_OPERATION
    # A writing command has an operation of its own, and is none among those that only read.
    for command in (Command.CREATE_STREAM, Command.LOGIN_REGISTER, Command.LOGOUT_USER):
        answer = await dialog.ask(command, b"", Operation.NON_REPLICATED)
        assert answer.status == ErrorCode.INVALID_COMMAND


def test_every_command_that_can_be_asked_has_a_handler() -> None:
    logins = {Command.LOGIN_REGISTER, Command.LOGIN_REGISTER_WITH_PERSONAL_ACCESS_TOKEN}
    assert {*COMMAND_OF.values(), *NON_REPLICATED, *logins} == set(HANDLERS)


async def test_refusals_of_writes_are_in_the_result_section(dialog: Dialog) -> None:
    await dialog.log_in()
    answer = await dialog.ask(Command.DELETE_STREAM, requests.StreamRequest(STREAM))
    assert (answer.status, answer.rejected) == (0, ErrorCode.STREAM_ID_NOT_FOUND)
    segments = requests.DeleteSegments(STREAM, TOPIC, 0, 1)
    answer = await dialog.ask(Command.DELETE_SEGMENTS, segments)
    assert (answer.status, answer.body) == (ErrorCode.STREAM_ID_NOT_FOUND, b"")


@pytest.mark.parametrize("command", UNAVAILABLE, ids=lambda command: command.name)
async def test_what_is_not_built_says_so(dialog: Dialog, command: Command) -> None:
    await dialog.log_in()
    answer = await dialog.ask(command, b"whatever")
    assert (answer.status or answer.rejected) == ErrorCode.FEATURE_UNAVAILABLE


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Dialog]]:
    """A dialog for many examples, with the loop that it runs on."""
    with asyncio.Runner() as runner:
        folder = tmp_path_factory.mktemp("broker")
        broker = runner.run(Broker.open(folder, BrokerSettings()))
        yield runner, Dialog(broker)
        runner.run(broker.close())


@settings(max_examples=500)
@given(command=st.sampled_from(sorted(HANDLERS)), body=st.binary(max_size=60))
def test_any_body_gets_an_answer(
    running: tuple[asyncio.Runner, Dialog], command: Command, body: bytes
) -> None:
    runner, dialog = running

    async def ask() -> None:
        await dialog.log_in()
        await dialog.ask(command, body)
        assert (await dialog.ask(Command.PING)).status == 0

    runner.run(ask())


async def test_requests_that_come_at_once_are_done_in_their_order(dialog: Dialog) -> None:
    await dialog.log_in()
    answers = await asyncio.gather(
        dialog.ask(Command.CREATE_STREAM, requests.CreateStream("s", {})),
        dialog.ask(Command.CREATE_TOPIC, requests.CreateTopic(STREAM, 1, "t", {})),
        dialog.ask(Command.CREATE_CONSUMER_GROUP, requests.CreateConsumerGroup(STREAM, TOPIC, "g")),
    )
    assert [answer.rejected for answer in answers] == [0, 0, 0]


async def test_send_is_done_before_what_comes_behind_it(dialog: Dialog) -> None:
    await dialog.set_up()
    reader = Consumer(ConsumerKind.CONSUMER, Identifier(7))
    first = PollingStrategy(PollingKind.FIRST)
    poll = requests.PollMessages(reader, STREAM, TOPIC, 0, first, 10, auto_commit=False)
    for sent in (1, 2):  # the first one waits for the compiled functions, the second one does not
        _, polled, pong = await asyncio.gather(
            dialog.produce(producer_batch(b"x"), 1),
            dialog.ask(Command.POLL_MESSAGES, poll),
            dialog.ask(Command.PING),
        )
        head, _ = polled_batches(polled.body)
        assert (head.messages_count, pong) == (sent, (0, b"", 0))


async def test_send_that_does_not_reach_the_disk_is_refused(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dialog.set_up()

    def failed(log: LocalLog, _: int) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(LogFailedError(f"{log.directory}: a flush failed"))
        return future

    monkeypatch.setattr(LocalLog, "flushed", failed)
    for _ in range(2):
        answer = await dialog.produce(producer_batch(b"x"), 1)
        assert answer == (ErrorCode.CANNOT_APPEND_MESSAGE, b"", 0)
    assert (await dialog.ask(Command.PING)).status == 0


async def test_connection_that_ends_is_forgotten(broker: Broker) -> None:
    first, second = Dialog(broker), Dialog(broker)
    await first.set_up(2)
    await second.log_in()
    group = requests.ConsumerGroupRequest(STREAM, TOPIC, Identifier("g"))
    await first.ask(Command.CREATE_CONSUMER_GROUP, requests.CreateConsumerGroup(STREAM, TOPIC, "g"))
    await first.ask(Command.JOIN_CONSUMER_GROUP, group)
    await second.ask(Command.JOIN_CONSUMER_GROUP, group)
    synced = await second.ask(Command.SYNC_CONSUMER_GROUP, group)
    assert synced.body[8:].hex() == "0100000001000000"
    first.session.close()
    synced = await second.ask(Command.SYNC_CONSUMER_GROUP, group)
    assert synced.body[8:].hex() == "020000000000000001000000"
    third = Dialog(broker)
    await third.log_in()
    assert (await third.ask(Command.SYNC_CONSUMER_GROUP, group)).body == b""
    clients = (await third.ask(Command.GET_CLIENTS)).body
    assert clients.count(Transport.peer.encode()) == 2


async def test_the_first_bytes_choose_the_dialect_for_good(dialog: Dialog) -> None:
    assert dialog.session.frame_size(memoryview(bytes(3))) is None
    assert (await dialog.ask(Command.PING)).status == 0
    header = frame.RequestHeader(CLIENT, bytes(16), 0, 2, Operation.NON_REPLICATED, 1, Command.PING)
    asked = bytearray(b"".join(frame.build_request(header, b"")))
    # A checksum where those of an older dialect have a length.
    asked[:4] = b"\4\0\0\0"
    dialog.session.frame_size(memoryview(asked))
    answer = await dialog.send_as_before(asked)
    assert frame.parse_reply(answer).request == 2


async def test_an_answer_that_is_there_leaves_in_the_same_turn(dialog: Dialog) -> None:
    await dialog.log_in()
    asking = asyncio.ensure_future(dialog.ask(Command.GET_STREAMS))
    await asyncio.sleep(0)  # the turn in which it is asked
    assert dialog.owed == 0
    assert (await asking).status == 0
