"""Goal: what a Pulsar client does in transactions holds up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from penstock import pace
from penstock.pulsar.handlers import transactional_ack
from pulsar_peer import Peer
from transacting_peer import Id, acknowledge, consuming


async def test_what_is_acknowledged_again_holds_nobody_up(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "_STEP_SECONDS", 0)
    monkeypatch.setattr(transactional_ack, "_STEPS_TOGETHER", 1)
    ledger, one = await consuming(peer, 1)
    first = Id(ledgerId=ledger, entryId=0)
    await acknowledge(peer, one, first)
    others: list[int] = []
    turns: set[int] = set()
    take_some = transactional_ack._take_some

    def counted(steps: Iterator[None]) -> bool:
        turns.add(len(others))
        return take_some(steps)

    async def work() -> None:
        while True:
            others.append(1)
            await asyncio.sleep(0)

    monkeypatch.setattr(transactional_ack, "_take_some", counted)
    working = asyncio.ensure_future(work())
    await acknowledge(peer, one, *[first] * 100)
    working.cancel()
    assert len(turns) > 10
