"""The table of loads, and what a choice brings with it."""

from __future__ import annotations

import pytest

from versus.loads import BY_NAME, LOADS, PROTOCOLS, Kind, chosen


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(LOADS) + 1


def test_what_is_read_was_written_before() -> None:
    written: set[str] = set()
    for load in LOADS:
        if load.kind in (Kind.CONSUME, Kind.CATCH_UP):
            assert load.topic in written
        written.add(load.topic or load.name)


def test_quick_loads_read_what_quick_loads_write() -> None:
    quick = chosen(everything=False)
    names = {load.name for load in quick}
    assert {load.topic for load in quick if load.topic} <= names


def test_each_protocol_reads_what_the_others_wrote() -> None:
    assert [load.writer for load in LOADS if load.kind is Kind.FOREIGN] == list(PROTOCOLS)


def test_a_choice_brings_what_it_reads() -> None:
    assert [load.name for load in chosen(everything=True, names=["consume-100-tuned"])] == [
        "produce-100-tuned",
        "consume-100-tuned",
    ]


def test_an_unknown_load_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown load nothing"):
        chosen(everything=True, names=["nothing"])
