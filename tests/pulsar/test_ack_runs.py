"""Runs of plain ACK frames: taken as one, they say what they say one by one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.limits import PULSAR_ACK_RUN_BYTES, PULSAR_MESSAGE_BYTES
from penstock.pulsar.wire.frames import encode_command, frame_size, parse_frame
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandAck,
    CommandFlow,
    CommandPing,
    MessageIdData,
)
from penstock.session import PeerError

LIMIT = int(PULSAR_MESSAGE_BYTES)

ids = st.builds(
    MessageIdData,
    ledgerId=st.sampled_from([7, 2**64 - 1]),
    entryId=st.sampled_from([0, 127, 128, 16_384, 2**64 - 1]) | st.integers(0, 2**40),
    partition=st.none() | st.just(3),
    ack_set=st.lists(st.integers(-5, 5), max_size=12),
)
plain_acks = st.builds(
    CommandAck,
    consumer_id=st.sampled_from([0, 1, 300, 2**64 - 1]),
    ack_type=st.sampled_from([CommandAck.Individual, CommandAck.Cumulative]),
    message_id=st.lists(ids, min_size=1, max_size=1),
)
other_acks = st.builds(
    CommandAck,
    consumer_id=st.just(1),
    ack_type=st.just(CommandAck.Individual),
    message_id=st.lists(ids, max_size=2),
    request_id=st.none() | st.just(9),
    txnid_least_bits=st.none() | st.just(5),
)
commands = st.lists(
    st.builds(lambda ack: BaseCommand(type=BaseCommand.ACK, ack=ack), plain_acks | other_acks)
    | st.just(BaseCommand(type=BaseCommand.FLOW, flow=CommandFlow(consumer_id=1, messagePermits=2)))
    | st.just(BaseCommand(type=BaseCommand.PING, ping=CommandPing())),
    max_size=40,
)


def ack(entry: int, consumer: int = 1) -> bytes:
    said = CommandAck(
        consumer_id=consumer,
        ack_type=CommandAck.Individual,
        message_id=[MessageIdData(ledgerId=7, entryId=entry)],
    )
    return encode_command(BaseCommand(type=BaseCommand.ACK, ack=said))


def taken(data: bytes) -> tuple[list[BaseCommand], bytes]:
    """Take what the server would; return it with the rest that is no whole frame."""
    parsed: list[BaseCommand] = []
    while (size := frame_size(memoryview(data), LIMIT)) is not None and size <= len(data):
        parsed.append(parse_frame(memoryview(data[:size])).command)
        data = data[size:]
    return parsed, data


def one_by_one(command: BaseCommand) -> list[BaseCommand]:
    """Return the commands that have one message id each and say the same."""
    if command.type != BaseCommand.ACK or len(command.ack.message_id) < 2:
        return [command]
    alone = []
    for message_id in command.ack.message_id:
        one = BaseCommand()
        one.CopyFrom(command)
        del one.ack.message_id[:]
        one.ack.message_id.append(message_id)
        alone.append(one)
    return alone


@given(commands, st.integers(0, 30))
def test_what_is_said_and_its_order_stay(said: list[BaseCommand], cut_off: int) -> None:
    frames = [encode_command(command) for command in said]
    data = b"".join(frames)
    parsed, rest = taken(data[: max(len(data) - cut_off, 0)])
    whole = len(data) - cut_off - len(rest)
    count = sum(1 for end in range(len(frames)) if len(b"".join(frames[: end + 1])) <= whole)
    expected = [one for command in said[:count] for one in one_by_one(command)]
    assert [one for command in parsed for one in one_by_one(command)] == expected


def test_a_run_is_one_step_and_no_longer_than_its_limit() -> None:
    entries = random.Random(1).sample(range(100_000), 5_000)
    data = b"".join(map(ack, entries))
    parsed, rest = taken(data)
    assert not rest
    assert len(parsed) <= len(data) / (PULSAR_ACK_RUN_BYTES - len(ack(99_999))) + 1
    assert [each.entryId for part in parsed for each in part.ack.message_id] == entries


def test_each_consumer_has_runs_of_its_own() -> None:
    parsed, _ = taken(ack(1) + ack(2) + ack(3, consumer=2) + ack(4))
    found = [(p.ack.consumer_id, [m.entryId for m in p.ack.message_id]) for p in parsed]
    assert found == [(1, [1, 2]), (2, [3]), (1, [4])]


def test_a_frame_that_is_not_whole_waits_for_its_rest() -> None:
    data = ack(1) + ack(2)
    for end in range(len(data)):
        assert frame_size(memoryview(data[:end]), LIMIT) == (len(ack(1)) if end >= 4 else None)


@pytest.mark.parametrize("damaged", range(len(ack(1))))
def test_no_length_in_a_frame_is_believed(damaged: int) -> None:
    for value in (0, 1, 0x7F, 0x80, 0xFF):
        second = bytearray(ack(2))
        second[damaged] = value
        data = memoryview(ack(1) + bytes(second) + ack(3))
        size = frame_size(data, LIMIT)
        assert size is not None
        assert size in {len(ack(1)), 2 * len(ack(1)), 3 * len(ack(1))}
        try:
            alone = [one.ack for one in _alone(data[:size], len(ack(1)))]
        except PeerError:
            with pytest.raises(PeerError):
                parse_frame(data[:size])
        else:
            joined = one_by_one(parse_frame(data[:size]).command)
            assert [one.ack for one in joined] == alone


def _alone(data: memoryview, size: int) -> list[BaseCommand]:
    return [parse_frame(data[at : at + size]).command for at in range(0, len(data), size)]
