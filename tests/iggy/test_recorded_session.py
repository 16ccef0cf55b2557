"""The recorded session, played to a fresh broker: the same requests get the same answers."""

from __future__ import annotations

from pathlib import Path

from iggy_dialog import Dialog, polled_batches
from iggy_golden import EXCHANGES, Exchange
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.iggy.wire import frame
from penstock.iggy.wire.commands import Command


def outcome(exchange: Exchange, answer: bytes) -> object:
    """What of an answer does not depend on the clock, the machine or the client's number."""
    if answer[60] == frame.FrameKind.EVICTION:
        return answer
    header, body = frame.parse_reply(answer), answer[frame.HEADER_SIZE :]
    if exchange.command is Command.POLL_MESSAGES:
        head, batches = polled_batches(body)
        return header, head, [frames for _, frames in batches]
    if exchange.command in {Command.GET_STATS, Command.GET_CLUSTER_METADATA}:
        return header
    return header, len(body), body[:4]


async def test_recorded_session_has_the_same_outcome_again(tmp_path: Path) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    dialog = Dialog(broker)
    for exchange in EXCHANGES:
        answer = await dialog.send(exchange.request)
        assert outcome(exchange, answer) == outcome(exchange, exchange.answer), exchange.command
    dialog.session.close()
    await broker.close()
