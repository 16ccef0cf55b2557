"""Keys keep their order whoever comes, leaves, gives back and takes nothing; and nobody is stuck.

The scenes, and who gets what when in them, are those that Apache Pulsar 4.0.0 was seen to play.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from keyed import Keyed, Watching
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.errors import ConsumerBusyError, KeyRangesError
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.selectors.key_shared import KeySharing
from receivers import settled

KEYS = ("k0", "k1", "k2", "k3")
"""Of two consumers c1 and c2, k0 and k3 are the first one's."""


@pytest.fixture
async def keyed(broker: Broker) -> Keyed:
    keyed = Keyed(broker)
    await keyed.start()
    return keyed


async def test_a_key_that_moves_waits_for_what_its_former_owner_holds(keyed: Keyed) -> None:
    await keyed.write(*KEYS, *KEYS)
    first = await keyed.join("c1", permits=100)
    assert len(await keyed.news(8)) == 8
    second = await keyed.join("c2", permits=100)
    assert await keyed.news() == []
    await keyed.write(*KEYS)
    assert await keyed.news(2) == ["k0.3>c1", "k3.3>c1"]
    keyed.acknowledge(1)
    assert await keyed.news() == []
    keyed.acknowledge(5)
    assert await keyed.news(1) == ["k1.3>c2"]
    await keyed.write("k1", "k2")
    assert await keyed.news(1) == ["k1.4>c2"]
    keyed.leave(first)
    assert await keyed.news(10) == [
        *("k0.1>c2", "k2.1>c2", "k3.1>c2", "k0.2>c2", "k2.2>c2", "k3.2>c2"),
        *("k0.3>c2", "k2.3>c2", "k3.3>c2", "k2.4>c2"),
    ]
    assert len(keyed.held_by(second)) == 12


async def test_what_is_given_back_goes_to_the_new_owner_in_order(keyed: Keyed) -> None:
    await keyed.write(*KEYS, *KEYS)
    first = await keyed.join("c1", permits=100)
    await keyed.news(8)
    await keyed.join("c2", permits=100)
    await keyed.write(*KEYS)
    await keyed.news(2)
    keyed.redeliver(first, {1})
    assert await keyed.news() == []
    keyed.redeliver(first, {5})
    assert await keyed.news(3) == ["k1.1>c2(r1)", "k1.2>c2(r1)", "k1.3>c2"]
    keyed.redeliver(first)
    found = await keyed.news(9)
    assert [each for each in found if each.startswith("k2")] == [
        "k2.1>c2(r1)",
        "k2.2>c2(r1)",
        "k2.3>c2",
    ]
    assert [each for each in found if each.startswith("k0")] == [
        f"k0.{number}>c1(r1)" for number in (1, 2, 3)
    ]


async def test_who_joins_and_leaves_again_leaves_the_key_to_who_had_it(keyed: Keyed) -> None:
    await keyed.write(*KEYS)
    await keyed.join("c1", permits=100)
    await keyed.news(4)
    second = await keyed.join("c2", permits=100)
    await keyed.write(*KEYS)
    assert await keyed.news(2) == ["k0.2>c1", "k3.2>c1"]
    keyed.leave(second)
    assert await keyed.news(2) == ["k1.2>c1", "k2.2>c1"]


async def test_what_is_given_back_goes_before_what_is_new(keyed: Keyed) -> None:
    await keyed.write("k0", "k0", "k1")
    member = await keyed.join("c1", permits=3)
    await keyed.news(3)
    await keyed.write("k0", "k1")
    keyed.redeliver(member, {0})
    assert await keyed.news() == []
    keyed.permit(member, 1)
    assert await keyed.news(1) == ["k0.1>c1(r1)"]
    keyed.permit(member, 2)
    assert await keyed.news(2) == ["k0.3>c1", "k1.2>c1"]
    keyed.leave(member)
    await keyed.join("c1", permits=10)
    assert await keyed.news(5) == ["k0.1>c1", "k0.2>c1", "k1.1>c1", "k0.3>c1", "k1.2>c1"]


async def test_without_order_nothing_waits_for_a_former_owner(broker: Broker) -> None:
    keyed = Keyed(broker, KeySharing(in_order=False))
    await keyed.start()
    await keyed.write(*KEYS)
    first = await keyed.join("c1", permits=100)
    await keyed.news(4)
    await keyed.join("c2", permits=100)
    await keyed.write(*KEYS)
    assert sorted(await keyed.news(4)) == ["k0.2>c1", "k1.2>c2", "k2.2>c2", "k3.2>c1"]
    keyed.redeliver(first, {0, 1, 2, 3})
    assert sorted(await keyed.news(4)) == [
        *("k0.1>c1(r1)", "k1.1>c2(r1)", "k2.1>c2(r1)", "k3.1>c1(r1)")
    ]


@pytest.mark.parametrize("stalled", [False, True])
async def test_others_go_on_past_one_that_takes_nothing(keyed: Keyed, stalled: bool) -> None:
    first = await keyed.join("c1")
    second = await keyed.join("c2", permits=10_000)
    if stalled:
        receiver = first.receiver
        assert isinstance(receiver, Watching)
        receiver.close_gate()
        keyed.permit(first, 10_000)
        await keyed.write("k0")
        await keyed.news(1)
    await keyed.write(*["k0", "k1"] * 600)
    assert await keyed.news(600) == [f"k1.{number}>c2" for number in range(1, 601)]
    if stalled:
        receiver.open_gate()
        assert await keyed.news(600) == [f"k0.{number}>c1" for number in range(2, 602)]
        return
    keyed.permit(first, 250)
    assert await keyed.news(250) == [f"k0.{number}>c1" for number in range(1, 251)]
    keyed.permit(first, 1_000)
    assert await keyed.news(350) == [f"k0.{number}>c1" for number in range(251, 601)]
    assert second.permits == 10_000 - 600


async def test_so_much_is_passed_over_and_no_more(
    keyed: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KEY_WAITING_OF_CONSUMER", 150)
    first = await keyed.join("c1")
    await keyed.join("c2", permits=10_000)
    await keyed.write(*["k0"] * 700, "k1")
    assert await keyed.news() == []
    assert 300 <= len(keyed.subscription._engine.waiting) < 400
    keyed.permit(first, 250)
    assert await keyed.news(250) == [f"k0.{number}>c1" for number in range(1, 251)]
    keyed.permit(first, 100)
    found = await keyed.news(101)
    assert len(found) == 101
    assert "k1.1>c2" in found


async def test_what_waits_and_is_acknowledged_is_not_sent(keyed: Keyed) -> None:
    first = await keyed.join("c1")
    await keyed.join("c2", permits=100)
    await keyed.write("k0", "k1", "k0", "k1", "k0")
    await keyed.news(2)
    for offset in (0, 2):
        keyed.acknowledge(offset)
    keyed.permit(first, 10)
    assert await keyed.news(1) == ["k0.3>c1"]
    assert keyed.subscription.cursor.position == 1


async def test_a_batch_costs_a_permit_a_message_and_is_not_split(keyed: Keyed) -> None:
    member = await keyed.join("c1", permits=1)
    await keyed.write("k0", "k0", "k1", count=3)
    assert await keyed.news(1) == ["k0.1>c1"]
    assert member.permits == -2
    keyed.permit(member, 2)
    assert await keyed.news() == []
    keyed.permit(member, 1)
    assert await keyed.news(1) == ["k0.2>c1"]


async def test_who_holds_too_much_gets_no_more(
    keyed: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "UNACKNOWLEDGED_MESSAGES", 4)
    first = await keyed.join("c1", permits=1_000)
    await keyed.join("c2", permits=1_000)
    await keyed.write(*["k0"] * 4)
    await keyed.news(4)
    await keyed.write("k0", "k1")
    assert await keyed.news(1) == ["k1.1>c2"]
    for offset in keyed.held_by(first)[:3]:
        keyed.acknowledge(offset)
    assert await keyed.news(1) == ["k0.5>c1"]


async def test_much_that_is_given_back_keeps_its_order(keyed: Keyed) -> None:
    member = await keyed.join("c1", permits=2_000)
    await keyed.write(*["k0", "k1", "k2"] * 300)
    assert len(await keyed.news(900)) == 900
    await keyed.write(*KEYS * 10)
    await keyed.news(40)
    keyed.redeliver(member)
    await keyed.write(*KEYS)
    found = await keyed.news(944)
    for key in KEYS:
        places = [int(each.split(".")[1].split(">")[0]) for each in found if each.startswith(key)]
        assert places == list(range(1, len(places) + 1))
    assert len(found) == 944


async def test_chosen_ranges_leave_what_is_nobodys_waiting(broker: Broker) -> None:
    keyed = Keyed(broker, KeySharing(chosen=True))
    await keyed.start()
    first = await keyed.join("c1", (0, 32_767), permits=100)
    keys = [f"k{number}" for number in range(20)]
    await keyed.write(*keys, *keys)
    lower = [each for each in (await keyed.news())[::2] if each]
    assert lower
    with pytest.raises(KeyRangesError):
        await keyed.join("c2", (32_767, 65_535))
    with pytest.raises(KeyRangesError):
        await keyed.join("c2")
    await keyed.join("c2", (32_768, 65_535), permits=100)
    upper = await keyed.news()
    assert {each.split(">")[1] for each in upper} == {"c2"}
    assert len(keyed.held_by(first)) + len(upper) == 40
    keyed.leave(first)
    assert await keyed.news() == []
    await keyed.join("c3", (0, 32_767), permits=100)
    assert len(await keyed.news()) == 40 - len(upper)


async def test_consumers_that_would_share_in_another_way_are_refused(
    keyed: Keyed, broker: Broker
) -> None:
    member = await keyed.join("c1", permits=10)
    others = [KeySharing(in_order=False), KeySharing(chosen=True)]
    for sharing in others:
        other = Keyed(broker, sharing)
        other.partition = keyed.partition
        with pytest.raises(ConsumerBusyError):
            await other.join("c2", (0, 65_535))
    keyed.leave(member)
    other = Keyed(broker, others[1])
    other.partition = keyed.partition
    await other.join("c2", (0, 65_535))


class Play:
    """Consumers that come, leave, take, acknowledge and give back, as chance has it."""

    def __init__(self, keyed: Keyed, chance: random.Random) -> None:
        self.keyed = keyed
        self.chance = chance
        self.count = 0

    async def join(self, permits: int = 0) -> None:
        if len(self.keyed.members) < 6:
            self.count += 1
            await self.keyed.join(f"c{self.count}", permits=permits)

    async def step(self) -> None:
        chance, keyed = self.chance, self.keyed
        kind = chance.choice("wwwjlaaaannrpppg")
        if kind == "w":
            keys = (f"k{chance.randrange(12)}" for _ in range(chance.randrange(30)))
            await keyed.write(*keys, count=chance.choice((1, 1, 3)))
        elif kind == "j":
            await self.join()
        elif keyed.members:
            member = chance.choice(keyed.members)
            held = keyed.held_by(member)
            some = chance.sample(held, chance.randrange(len(held) + 1))
            self.have(member, kind, some)

    def have(self, member: Consumer, kind: str, some: list[int]) -> None:
        """A consumer does something, maybe with some of what it holds."""
        keyed = self.keyed
        match kind:
            case "l":
                keyed.leave(member)
            case "a":
                for offset in some:
                    keyed.acknowledge(offset)
            case "n":
                keyed.redeliver(member, set(some))
            case "r":
                keyed.redeliver(member)
            case "p":
                keyed.permit(member, self.chance.randrange(40))
            case _:
                receiver = member.receiver
                assert isinstance(receiver, Watching)
                (receiver.close_gate if self.chance.random() < 0.5 else receiver.open_gate)()

    async def end(self) -> None:
        """Everybody takes and acknowledges all, and nothing is left."""
        await self.join(permits=1)
        for member in self.keyed.members:
            receiver = member.receiver
            assert isinstance(receiver, Watching)
            receiver.open_gate()
            self.keyed.permit(member, 100_000)
        for _ in range(100):
            await settled()
            for member in self.keyed.members:
                for offset in self.keyed.held_by(member):
                    self.keyed.acknowledge(offset)
            if not self.keyed.holders:
                return
        raise AssertionError(f"{self.keyed.holders} were never delivered")


@pytest.mark.parametrize("seed", range(8))
async def test_no_key_is_overtaken_and_none_is_stuck(
    keyed: Keyed, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(keyed, random.Random(seed))
    read = keyed.partition.read_on

    async def slowly(*arguments: Any) -> Any:
        for _ in range(play.chance.randrange(60)):
            await asyncio.sleep(0)
        return await read(*arguments)

    monkeypatch.setattr(keyed.partition, "read_on", slowly)
    for _ in range(120):
        await play.step()
        for _ in range(play.chance.randrange(40)):
            await asyncio.sleep(0)
    await play.end()
    engine = keyed.subscription._engine
    assert keyed.subscription.backlog == 0
    assert len(engine.leases) == len(engine.leases.slots) == len(engine.waiting) == 0
