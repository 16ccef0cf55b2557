from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.source.offsets import (
    TopicPartition,
    from_json,
    limit_rows,
    to_json,
    topic_ids,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
sources = st.builds(TopicPartition, st.sampled_from(["a", "b.c"]), st.integers(0, 20))
offsets = st.dictionaries(sources, st.integers(0, 2**62))


def test_offsets_are_stored_as_sparks_kafka_source_does() -> None:
    assert to_json({A1: 7, A0: 5, B0: 0}) == {"a": {"0": 5, "1": 7}, "b": {"0": 0}}


@given(offsets)
def test_stored_offsets_come_back(given: dict[TopicPartition, int]) -> None:
    assert from_json(to_json(given)) == given


def test_ids_are_stored_beside_the_offsets_of_their_topics() -> None:
    stored = to_json({A0: 5, B0: 0}, {"a": "one", "c": "three"})
    assert stored == {"a": {"0": 5, "id": "one"}, "b": {"0": 0}}
    assert (from_json(stored), topic_ids(stored)) == ({A0: 5, B0: 0}, {"a": "one"})


@pytest.mark.parametrize(
    "stored", [{"a": {"id": 3}}, {"a": 3}, {"a": {"x": 3}}, {"a": {"0": "3"}}, {"a": {"0": True}}]
)
def test_another_form_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must hold an object"):
        from_json(stored)  # type: ignore[arg-type]  # what a person may write


def test_a_number_is_no_offsets_of_topics() -> None:
    with pytest.raises(ValueError, match="17 names no topic"):
        from_json(17)  # type: ignore[arg-type]  # what a person may write


def test_a_limit_is_shared_in_proportion_to_what_waits() -> None:
    latest = {A0: 100, A1: 300, B0: 50}
    assert limit_rows({A0: 0, A1: 0, B0: 50}, latest, 40) == {A0: 10, A1: 30, B0: 50}


def test_a_small_backlog_beside_a_large_one_does_not_starve() -> None:
    assert limit_rows({A0: 0, A1: 0}, {A0: 1, A1: 10**9}, 10)[A0] == 1


def test_all_of_it_fits_in_a_large_limit() -> None:
    latest = {A0: 5, A1: 6}
    assert limit_rows({A0: 0, A1: 6}, latest, 5) == latest
