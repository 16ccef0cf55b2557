"""Goal: the comparison with Spark's Kafka source compares what it says."""

from __future__ import annotations

import json
from io import BytesIO

import fastavro

from schema_registry import schema_registry
from versus.spark import orders
from versus.spark.__main__ import alone, by_turn, table
from versus.spark.cases import (
    BARS,
    CASES,
    CONVERSIONS,
    EFFICIENCY,
    SPEED,
    TURNS,
    Bar,
    applications,
    in_turn,
)

BAR = Bar("ours", "theirs", SPEED, 2.0)


def run(number: int, case: str, rate: float, turn: int = 1) -> dict[str, object]:
    use = {"seconds": 1.0, "resident_mib": 1.0, EFFICIENCY: rate}
    return {"round": number, "turn": turn, "case": case, SPEED: rate, **use}


def test_each_bar_compares_the_same_rows() -> None:
    for bar in BARS:
        ours, theirs = CASES[bar.ours], CASES[bar.theirs]
        same = ("topic", "warm", "prepare", "times", "shares")
        assert [getattr(ours, each) for each in same] == [getattr(theirs, each) for each in same]
        assert ours.reads == "penstock"
        # Where both read the files of one table, that is ours.
        assert theirs.reads == ("penstock" if theirs.prepare else "kafka")
        assert bool(theirs.shares) == bool(theirs.prepare)


def test_avro_is_in_the_wire_format_of_the_registrys_schema() -> None:
    with schema_registry() as registry:
        assert registry.register("orders-value", orders.AVRO_ORDER) == orders.SCHEMA_ID
    written = [json.loads(each) for each in orders.as_json(3)]
    for value, order in zip(orders.as_avro(3), written, strict=True):
        assert value.startswith(b"\0" + orders.SCHEMA_ID.to_bytes(4, "big"))
        record = fastavro.schemaless_reader(BytesIO(value[5:]), orders.AVRO_ORDER, None)
        assert record == order


def test_who_shares_an_application_takes_turns_in_it() -> None:
    both = next(each for each in applications(CASES.values()) if len(each) > 1)
    assert in_turn(both)[:4] == [(1, both[0]), (1, both[1]), (2, both[1]), (2, both[0])]
    assert len(in_turn(both)) == 2 * TURNS
    assert in_turn(both[:1]) == [(1, both[0])]
    for each in applications(CASES.values()):
        assert len({(case.topic, case.reads, case.prepare, case.warm) for case in each}) == 1
    assert [case for each in applications(CASES.values()) for case in each] == list(CASES.values())


def test_a_ratio_is_of_one_turn_of_one_round() -> None:
    runs = [run(1, "ours", 30), run(1, "theirs", 10), run(2, "ours", 10), run(2, "theirs", 5)]
    runs += [run(2, "ours", 8, turn=2), run(2, "theirs", 8, turn=2)]
    assert by_turn([*runs, run(3, "ours", 1)], BAR) == [3.0, 2.0, 1.0]


def test_a_conversion_is_what_columns_take_beyond_bytes() -> None:
    for each in CONVERSIONS:
        rates = dict(zip((*each.ours, *each.theirs), (4, 8, 1, 2), strict=True))
        runs = [run(1, case, rate) for case, rate in rates.items()]
        assert alone([*runs, run(2, each.ours[0], 4)], each) == [4.0]
        assert any(line.startswith(f"| {each.name} |") for line in table(runs))
        assert len({CASES[case].topic for case in each.cases}) == 1
        assert {CASES[case].reads for case in each.ours} == {"penstock"}
        assert {CASES[case].reads for case in each.theirs} == {"kafka"}


def test_a_case_that_failed_is_in_no_table() -> None:
    failed = {"round": 1, "case": BARS[0].theirs, "failure": "no memory"}
    lines = list(table([run(1, BARS[0].ours, 30), failed]))
    assert any(line.startswith(f"| {BARS[0].ours} | 30 |") for line in lines)
    assert not any("÷ " in line and SPEED in line and BARS[0].theirs in line for line in lines)
