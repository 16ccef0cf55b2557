"""Frames of the real client: whole, with more behind them, cut off; and the answers it took."""

from __future__ import annotations

import pytest

from iggy_golden import EXCHANGES, Exchange
from penstock.iggy.handlers import HANDLERS
from penstock.iggy.wire import frame, replies
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.fields import Reader
from penstock.iggy.wire.message import Message

REPLIES: dict[Command, type[Message]] = {
    Command.LOGIN_REGISTER: replies.LoggedIn,
    Command.GET_CLUSTER_METADATA: replies.ClusterMetadata,
    Command.DESCRIBE_OPTIONS: replies.OptionDescriptions,
    Command.GET_STATS: replies.Stats,
    Command.GET_USERS: replies.Users,
    Command.GET_USER: replies.UserDetails,
    Command.CREATE_STREAM: replies.Stream,
    Command.GET_STREAMS: replies.Streams,
    Command.GET_STREAM: replies.StreamDetails,
    Command.CREATE_TOPIC: replies.TopicDetails,
    Command.GET_TOPIC: replies.TopicDetails,
    Command.GET_TOPICS: replies.Topics,
    Command.SEND_MESSAGES: replies.Confirmations,
    Command.CREATE_CONSUMER_GROUP: replies.ConsumerGroupDetails,
    Command.GET_CONSUMER_GROUP: replies.ConsumerGroupDetails,
    Command.GET_CONSUMER_GROUPS: replies.ConsumerGroups,
    Command.SYNC_CONSUMER_GROUP: replies.Assignment,
}

every_exchange = pytest.mark.parametrize(
    "exchange", EXCHANGES, ids=lambda exchange: exchange.command.name
)


def request_kind(exchange: Exchange) -> type[Message]:
    return HANDLERS[exchange.command].request


@every_exchange
def test_request_is_read_and_written_as_the_client_writes_it(exchange: Exchange) -> None:
    message = request_kind(exchange).decode(exchange.body)
    assert message.encode() == exchange.body
    again = b"".join(frame.build_request(exchange.header, exchange.body))
    assert again == exchange.request


@every_exchange
def test_end_of_a_frame_is_found_byte_by_byte(exchange: Exchange) -> None:
    for sent in (exchange.request, exchange.answer):
        for size in range(frame.START_SIZE):
            assert frame.frame_size(sent[:size]) is None
        assert frame.frame_size(sent[: frame.START_SIZE]) == len(sent)
        assert frame.frame_size(sent + sent) == len(sent)


@every_exchange
def test_request_that_is_cut_off_is_refused_or_another_whole_one(exchange: Exchange) -> None:
    kind = request_kind(exchange)
    for size in range(len(exchange.body)):
        try:
            shorter = kind.decode(exchange.body[:size])
        except IggyError:
            continue
        assert shorter.encode() == exchange.body[:size]


@every_exchange
def test_answer_that_the_client_took_reads_back(exchange: Exchange) -> None:
    if exchange.answer[60] == frame.FrameKind.EVICTION:
        assert exchange.answer[-1] == frame.EvictionReason.INVALID_CREDENTIALS
        assert exchange.answer[128:144] == exchange.header.client
        return
    header = frame.parse_reply(exchange.answer)
    assert (header.client, header.request) == (exchange.header.client, exchange.header.request)
    assert header.operation == exchange.header.operation
    body = exchange.answer[frame.HEADER_SIZE :]
    if frame.has_result_section(header.operation):
        if body == frame.rejected(ErrorCode.FEATURE_UNAVAILABLE):
            return
        assert body[:4] == frame.ACCEPTED
        body = body[4:]
    kind = REPLIES.get(exchange.command)
    if kind is None:
        assert exchange.command is Command.POLL_MESSAGES or not body
    elif body:
        assert kind.decode(body).encode() == body


def test_polls_answer_with_whole_batches() -> None:
    polls = [exchange for exchange in EXCHANGES if exchange.command is Command.POLL_MESSAGES]
    assert polls
    for exchange in polls:
        reader = Reader(exchange.answer[frame.HEADER_SIZE :])
        head = replies.Polled.read(reader)
        assert bool(head.messages_count) == bool(reader.remaining)


def test_recording_holds_every_command_that_the_client_has() -> None:
    recorded = {exchange.command for exchange in EXCHANGES}
    client_has_no_call_for = {
        *(Command.GET_ME, Command.GET_CLIENT, Command.GET_CLIENTS, Command.GET_CONSUMER_OFFSET),
        *(Command.FLUSH_UNSAVED_BUFFER, Command.GET_PERSONAL_ACCESS_TOKENS),
        *(Command.DELETE_SEGMENTS, Command.GET_SNAPSHOT),
        Command.LOGIN_REGISTER_WITH_PERSONAL_ACCESS_TOKEN,
    }
    answered = {command for command, handler in HANDLERS.items() if handler.request is not None}
    from penstock.iggy.handlers.unavailable import UNAVAILABLE

    assert answered - set(UNAVAILABLE) - client_has_no_call_for <= recorded
