"""Which consumer a key belongs to, as Apache Pulsar 4.0.0 was seen to have it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from penstock.broker.errors import KeyRangesError
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.selectors.key_owners import KeyOwners
from penstock.broker.subscriptions.selectors.key_ranges import KeyRanges
from penstock.broker.subscriptions.selectors.key_ring import KeyRing
from penstock.records.pulsar.sticky_key import NO_KEY, murmur3_32, sticky_hash
from pulsar_peer import entry
from receivers import FakeReceiver

Ranges = tuple[tuple[int, int], ...]

OF_TWO = (
    "1221222112121212211121122212121112111221211212222122122122121122112112221221111212222121121211"
    "2122211122122121112112122212222122112222121212121122211222122212221121112221212222122122212222"
    "111212122212"
)
OF_FOUR = (
    "1321334134333343211131142412444413113323413232424132122444434143442112323423434313323131324214"
    "3134231133322131143112134214223142412233121213444134231322432243443133433321243343132134242324"
    "131434333313"
)
OF_THE_SAME = (
    "4421234344313432222323144424324432413242131334422311234234211222111313421331243221141113143134"
    "4224434313321223141114322412232332114424341421443441214111224322323411341213412132123144422214"
    "331342121443"
)
STICKY_HALVES = (
    "2222222221212122221111222121221222112122122111222112112122221211212112121221222212111112112112"
    "221122"
)


def consumer(name: str, *ranges: tuple[int, int]) -> Consumer:
    return Consumer(FakeReceiver(), name, key_ranges=ranges)


def joined(owners: KeyOwners[Consumer], *consumers: Consumer) -> KeyOwners[Consumer]:
    for each in consumers:
        owners.check(each)
        owners.add(each)
    return owners


def seen(owners: KeyOwners[Consumer], names: dict[Consumer, str], keys: Any) -> str:
    """Return whose each key is, a character each."""
    found = (owners.owner(owners.slot(entry(partition_key=key))) for key in keys)
    return "".join(names[each] if each else "-" for each in found)


def keys(count: int) -> list[str]:
    return [f"k{number}" for number in range(count)]


def ring_of(*names: str) -> tuple[KeyOwners[Consumer], dict[Consumer, str]]:
    members = [consumer(name) for name in names]
    numbers = {each: str(number) for number, each in enumerate(members, 1)}
    return joined(KeyRing(), *members), numbers


@pytest.mark.parametrize(
    ("names", "owners"),
    [
        (["c1"], "1" * 200),
        (["c1", "c2"], OF_TWO),
        (["c1", "c2", "c3", "c4"], OF_FOUR),
        (["same"] * 4, OF_THE_SAME),
    ],
)
def test_keys_spread_as_with_pulsar(names: list[str], owners: str) -> None:
    assert seen(*ring_of(*names), keys(200)) == owners


def test_the_order_in_which_consumers_came_does_not_matter() -> None:
    owners, numbers = ring_of("c4", "c3", "c2", "c1")
    found = seen(owners, numbers, keys(200))
    assert found.translate(str.maketrans("1234", "4321")) == OF_FOUR


@pytest.mark.parametrize("leaves", range(4))
def test_who_leaves_and_comes_back_has_its_keys_again(leaves: int) -> None:
    members = [consumer("same") for _ in range(4)]
    names = {each: str(number) for number, each in enumerate(members, 1)}
    owners = joined(KeyRing(), *members)
    owners.remove(members[leaves])
    assert str(leaves + 1) not in seen(owners, names, keys(200))
    owners.add(members[leaves])
    assert seen(owners, names, keys(200)) == OF_THE_SAME
    for each in members:
        owners.remove(each)
    assert owners.owner(1) is None


@pytest.mark.parametrize("leaves", [False, True])
def test_what_moves_is_said_and_is_no_more_than_a_share(leaves: bool) -> None:
    members = [consumer(f"c{number}") for number in range(20)]
    owners = joined(KeyRing(), *members)
    slots = range(1, 65_536)
    before = [owners.owner(slot) for slot in slots]
    moved = owners.remove(members[7]) if leaves else owners.add(consumer("another"))
    after = [owners.owner(slot) for slot in slots]
    said = {slot for start, end in moved for slot in range(start, end)}
    changed = {slot for slot in slots if before[slot - 1] is not after[slot - 1]}
    assert changed == said
    assert 65_535 / 40 < len(changed) < 65_535 / 10


def facts(number: int, **metadata: Any) -> bytes:
    return entry(**{"producer_name": "test", "sequence_id": number, **metadata})


def of_four(entries: list[bytes]) -> str:
    owners, numbers = ring_of("c1", "c2", "c3", "c4")
    found = [owners.owner(owners.slot(each)) for each in entries]
    return "".join(numbers[each] for each in found if each is not None)


def written(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def test_the_key_of_an_entry_is_the_one_that_pulsar_takes() -> None:
    count = range(20)
    by_key, by_number = OF_FOUR[:20], "42123422233313321322"
    b64 = {"partition_key_b64_encoded": True}
    assert of_four([facts(n, partition_key=f"k{n}") for n in count]) == by_key
    ordered = [facts(n, ordering_key=f"k{n}".encode(), partition_key="x") for n in count]
    assert of_four(ordered) == by_key
    assert of_four([facts(n, partition_key=written(f"k{n}"), **b64) for n in count]) == by_key
    unpadded = [facts(n, partition_key=written(f"k{n}").rstrip("="), **b64) for n in count]
    assert of_four(unpadded) == by_key
    null = [facts(n, partition_key=f"k{n}", null_partition_key=True) for n in count]
    assert of_four(null) == by_key
    assert of_four([facts(n) for n in count]) == by_number
    assert of_four([facts(n, num_messages_in_batch=2) for n in count]) == by_number
    assert of_four([facts(n, partition_key="") for n in count]) == "4" * 20
    assert of_four([facts(n, ordering_key=b"", partition_key=f"k{n}") for n in count]) == "4" * 20
    nameless = [facts(n, producer_name="") for n in count]
    assert of_four(nameless) == "31112324143242334213"


@pytest.mark.parametrize(
    "unreadable",
    [
        b"",
        b"body",
        b"\x0e\x01\0\0\0\0\0\0\0\x09",
        b"\xff\xff\xff\xff" + bytes(8),
        bytes(facts(0, partition_key="not base64!", partition_key_b64_encoded=True)),
    ],
)
def test_what_has_no_readable_key_has_one_all_the_same(unreadable: bytes) -> None:
    assert sticky_hash(unreadable) == murmur3_32(NO_KEY) & 0x7FFFFFFF


def test_a_sequence_beyond_what_is_signed_is_written_as_java_does() -> None:
    assert sticky_hash(facts((1 << 64) - 2)) == murmur3_32(b"test--2") & 0x7FFFFFFF


def test_chosen_ranges_have_the_keys_that_they_have_with_pulsar() -> None:
    first = consumer("c1", (0, 16_383), (49_152, 65_535))
    second = consumer("c2", (16_384, 49_151))
    owners = joined(KeyRanges(), first, second)
    assert seen(owners, {first: "1", second: "2"}, keys(100)) == STICKY_HALVES
    owners.remove(second)
    # What lies between two ranges of one consumer is nobody's.
    owned = [key for key, owner in zip(keys(100), STICKY_HALVES, strict=True) if owner == "1"]
    assert seen(owners, {first: "1"}, owned) == "1" * len(owned)
    assert all(owners.owner(slot) is None for slot in range(16_384, 49_152))


@pytest.mark.parametrize(
    ("there", "wanted", "refusal"),
    [
        ((), (), "Ranges for KeyShared policy must not be empty."),
        ((), ((10, 5),), "Fixed hash range start > end for range: [10,5]"),
        (((0, 10),), ((5, 20),), "Range conflict with consumer c1"),
        (((0, 10),), ((10, 20),), "Range conflict with consumer c1"),
        (((0, 10),), ((2, 8),), "Range conflict with consumer c1"),
        (((2, 8),), ((0, 10),), "Range conflict with consumer c1"),
        (((0, 10),), ((0, 10),), "Range conflict with consumer c1"),
        (((0, 10), (20, 30)), ((12, 25),), "Range conflict with consumer c1"),
        (((0, 10),), ((30, 40), (5, 6)), "Range conflict with consumer c1"),
        ((), ((5, 5),), None),
        ((), ((-5, 10),), None),
        ((), ((0, 65_536),), None),
        ((), ((65_536, 70_000),), None),
        ((), ((-10, -5),), None),
        ((), ((5, 20), (0, 5)), "Consumer's own ranges conflict: [0,5] overlaps with [5,20]"),
        ((), ((0, 10), (0, 10)), "Consumer's own ranges conflict: [0,10] overlaps with [0,10]"),
        ((), ((0, 10), (11, 20)), None),
        (((0, 10),), ((11, 20),), None),
        (((0, 10), (20, 30)), ((12, 18),), None),
    ],
)
def test_ranges_are_refused_as_by_pulsar(
    there: Ranges, wanted: Ranges, refusal: str | None
) -> None:
    owners: KeyOwners[Consumer] = KeyRanges()
    if there:
        joined(owners, consumer("c1", *there))
    if refusal is None:
        joined(owners, consumer("c2", *wanted))
        return
    with pytest.raises(KeyRangesError) as refused:
        owners.check(consumer("c2", *wanted))
    assert str(refused.value) == refusal


def test_nobody_has_what_lies_in_no_range() -> None:
    member = consumer("c1", (5, 10), (70_000, 80_000), (-7, -3))
    owners = joined(KeyRanges(), member)
    assert {slot for slot in range(1, 65_536) if owners.owner(slot)} == set(range(5, 11))
    owners.remove(member)
    assert owners.owner(7) is None


def test_of_one_bound_the_slot_is_there_for_good() -> None:
    member = consumer("c1", (7, 7))
    owners = joined(KeyRanges(), member)
    assert [slot for slot in range(1, 20) if owners.owner(slot)] == [7]
