"""Goal: the comparison with Spark's Kafka source compares what it says."""

from __future__ import annotations

from versus.spark.__main__ import by_round, table
from versus.spark.cases import BARS, CASES, EFFICIENCY, SPEED, Bar

BAR = Bar("ours", "theirs", SPEED, 2.0)


def run(number: int, case: str, rate: float) -> dict[str, object]:
    use = {"seconds": 1.0, "resident_mib": 1.0, EFFICIENCY: rate}
    return {"round": number, "case": case, SPEED: rate, **use}


def test_each_bar_compares_the_same_rows_of_two_brokers() -> None:
    for bar in BARS:
        ours, theirs = CASES[bar.ours], CASES[bar.theirs]
        assert ours.topic == theirs.topic
        assert (ours.reads, theirs.reads) == ("penstock", "kafka")
        assert ours.warm == theirs.warm


def test_a_ratio_is_of_one_round() -> None:
    runs = [run(1, "ours", 30), run(1, "theirs", 10), run(2, "ours", 10), run(2, "theirs", 5)]
    assert by_round([*runs, run(3, "ours", 1)], BAR) == [3.0, 2.0]


def test_a_case_that_failed_is_in_no_table() -> None:
    failed = {"round": 1, "case": BARS[0].theirs, "failure": "no memory"}
    lines = list(table([run(1, BARS[0].ours, 30), failed]))
    assert any(line.startswith(f"| {BARS[0].ours} | 30 |") for line in lines)
    assert not any("÷ " in line and SPEED in line and BARS[0].theirs in line for line in lines)
