"""Runs in which batches of several encodings alternate."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import records
from penstock.log.header import Magic
from penstock.records import conversion
from penstock.records.kafka.control import end_marker
from stored_batches import (
    Record,
    at_offset,
    entry,
    iggy_batch,
    iggy_body,
    join,
    kafka_batch,
    metadata,
    pulsar_batch,
)

MARKER = "marker"
KINDS = [*Magic, MARKER]


def stored(kinds: Iterable[Magic | str], value_bytes: int = 5) -> list[bytes]:
    """Return a batch of one message, or a marker, at each offset."""
    found = []
    for offset, kind in enumerate(kinds):
        value = b"%d" % offset * value_bytes
        if kind is Magic.KAFKA:
            found.append(kafka_batch([Record(value)], offset))
        elif kind is Magic.PULSAR:
            found.append(pulsar_batch(entry(metadata(), value), offset))
        elif kind is Magic.IGGY:
            found.append(iggy_batch(iggy_body([Record(value)]), offset))
        else:
            marker = end_marker(7, 0, committed=True, coordinator_epoch=0)
            found.append(at_offset(marker, offset))
    return found


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=30), st.integers(1, 400))
@pytest.mark.parametrize("target", [Magic.KAFKA, Magic.IGGY])
@pytest.mark.parametrize("apart", [1, 300, 1 << 20])
def test_a_run_becomes_what_its_batches_become(
    apart: int, target: Magic, kinds: list[Magic | str], value_bytes: int
) -> None:
    batches = stored(kinds, value_bytes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(conversion, "_APART_BYTES", apart)
        converted = join(records.convert(b"".join(batches), target))
    assert converted == b"".join(join(records.convert(each, target)) for each in batches)


@pytest.mark.parametrize(("target", "other"), [("KAFKA", "PULSAR"), ("IGGY", "KAFKA")])
def test_markers_between_batches_cost_no_conversion_each(
    target: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: Magic | str = MARKER if target == "KAFKA" else Magic.IGGY
    batches = b"".join(stored([own, Magic[other]] * 300))
    converted = conversion._converted
    calls = []

    def counted(*arguments: object) -> memoryview:
        calls.append(arguments)
        return converted(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(conversion, "_converted", counted)
    assert len(list(records.convert(batches, Magic[target]))) == 1
    assert len(calls) == 1


def test_a_long_stretch_stays_where_it_is() -> None:
    kinds = [Magic.PULSAR, *[Magic.KAFKA] * 200, Magic.PULSAR]
    run = b"".join(stored(kinds, 500))
    first, middle, last = records.convert(run, Magic.KAFKA)
    assert isinstance(middle, memoryview)
    assert middle.obj is run
    assert len(first) < len(last) < len(middle)


def test_a_batch_that_can_not_be_read_is_named_among_others() -> None:
    batches = stored([MARKER, Magic.PULSAR] * 4)
    batches[5] = pulsar_batch(b"no entry at all", 5)
    with pytest.raises(records.MalformedBatchError) as caught:
        join(records.convert(b"".join(batches), Magic.KAFKA))
    assert (caught.value.base_offset, caught.value.next_offset) == (5, 6)
