"""The page that is made from a result says what was measured, and where Penstock loses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from versus import results, tables
from versus.cells import number
from versus.plots import draw
from versus.report import page

LABELS = {"protocol": "kafka", "durability": "flushed", "layout": "two shared", "round": 1}


def produced(broker: str, seconds: float) -> dict[str, Any]:
    numbers = {"messages": 1000, "load_seconds": seconds, "broker_cpu_seconds": 0.5}
    held = {"broker_resident_mib": 100.0, "disk_bytes": 1_100_000, "limit": "client"}
    return LABELS | {"broker": broker, "load": "produce-1024-default"} | numbers | held


def result(*runs: dict[str, Any]) -> dict[str, Any]:
    settings = {"flushed": "always", "written": "never"}
    return {
        "started": "2026-01-02T03:04:05+00:00",
        "commit": "abc",
        "machine": {"processor": "P", "cores": 2, "memory_gib": 4.0, "system": "S"},
        "versions": dict.fromkeys(
            ("python", "java", "confluent-kafka", "pulsar-client", "apache-iggy"), "1"
        ),
        "scale": {"name": "quick", "rounds": 1},
        "brokers": {"kafka": {"version": "4", "client": None, "settings": settings}},
        "not_measured": {"iggy": "there is no cargo"},
        "runs": list(runs),
    }


def test_a_loss_is_named_on_top() -> None:
    text = "\n".join(tables.page(result(produced("penstock", 2.0), produced("kafka", 1.0))))
    losses = text.partition("## Where Penstock loses")[2].partition("##")[0]
    assert "| kafka | flushed | two shared | produce 1 KB, default batches | throughput" in losses
    assert "**0.50**" in losses


def test_the_ratios_that_matter_most_come_first() -> None:
    text = "\n".join(page(result(produced("penstock", 2.0), produced("kafka", 1.0)), []))
    glance = text.partition("## At a glance")[2].partition("##")[0]
    row = "| produce 1 KB, default batches | throughput (more is better)"
    assert f"{row} | **0.50** · - | - · - | - · - |" in glance
    assert "| broker CPU (less is better) | 1.00 · - | - · - | - · - |" in glance


def test_no_loss_is_said_as_well() -> None:
    text = "\n".join(tables.page(result(produced("penstock", 1.0), produced("kafka", 2.0))))
    assert "Nowhere in these runs." in text


def test_who_is_not_measured_is_named_with_the_reason() -> None:
    text = "\n".join(page(result(produced("penstock", 1.0)), []))
    assert "| iggy | **not measured** | there is no cargo |" in text


def test_the_limit_and_each_setting_stand_in_the_table() -> None:
    whole = result(produced("penstock", 1.0), produced("kafka", 2.0))
    assert "**the client**, **the client**" in "\n".join(tables.page(whole))
    assert "| kafka | 4 | always | never |" in "\n".join(page(whole, []))


def test_who_can_not_keep_the_rate_is_overloaded_and_not_compared() -> None:
    quick, queued = ({"p50": middle, "p99": 2 * middle} for middle in (1.0, 500.0))
    runs = [
        produced(broker, 1.0) | {"load": "publish-1000", "latency_ms": latency}
        for broker, latency in (("penstock", quick), ("kafka", queued))
    ]
    text = "\n".join(tables.page(result(*runs)))
    assert "| p99, ms | 2.00 | overload: 1,000 | overload |" in text
    assert "Nowhere in these runs." in text


def test_what_crosses_protocols_stands_beside_what_does_not() -> None:
    own = produced("penstock", 1.0) | {"load": "foreign-kafka"}
    foreign = produced("penstock", 2.0) | {"load": "foreign-iggy", "limit": "others"}
    text = "\n".join(page(result(own, foreign), []))
    crossing = text.partition("## Across protocols")[2].partition("##")[0]
    assert "| kafka | 1.02, 488 | - | - |" in crossing
    assert "| iggy | 0.51, 488 | - | - |" in crossing
    assert "Other programs disturbed 1 of these 2 runs." in crossing


def test_loads_of_a_later_run_replace_the_earlier_ones_and_say_where_they_are_from() -> None:
    earlier = result(produced("penstock", 1.0), produced("kafka", 1.0) | {"load": "foreign-iggy"})
    machine = earlier["machine"] | {"processor": "Q"}
    later = result() | {"commit": "def", "machine": machine}
    whole = results.continued(earlier, later, ["foreign-iggy"])
    assert [run["load"] for run in whole["runs"]] == ["produce-1024-default"]
    assert results.continued(whole, later, ["foreign-iggy"])["added"] == whole["added"]
    text = "\n".join(page(whole, []))
    assert "at commit def, on 2026-01-02: consume 1 KB that iggy clients wrote" in text
    assert "Machine: Q," in text
    with pytest.raises(ValueError, match="scale"):
        results.continued(earlier, later | {"scale": {"name": "full"}}, ["foreign-iggy"])


def test_plots_are_the_same_each_time(tmp_path: Path) -> None:
    whole = result(produced("penstock", 1.0), produced("kafka", 2.0))
    first, again = (draw(whole, tmp_path / name)[0].read_bytes() for name in ("first", "again"))
    assert first == again
    assert b"produce 1 KB" in first


def test_a_failure_stands_where_the_number_would() -> None:
    failed = LABELS | {"broker": "kafka", "load": "produce-1024-default", "failure": "a | b"}
    text = "\n".join(tables.page(result(produced("penstock", 1.0), failed)))
    assert "failed: a / b" in text


@pytest.mark.parametrize(
    ("value", "shown"), [(1234.5, "1,234"), (12.34, "12.3"), (0.1234, "0.12"), (99.99, "100.0")]
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


def test_a_result_is_read_as_it_was_saved(tmp_path: Path) -> None:
    whole = result(produced("penstock", 1.0), produced("kafka", 2.0))
    results.save(tmp_path / "folder" / "result.json", whole)
    assert results.load(tmp_path / "folder" / "result.json") == whole


def test_a_result_keeps_no_more_digits_than_it_knows() -> None:
    assert results.rounded({"a": [1], "b": 1.23456789, "c": {"d": 123456.789}}) == {
        "a": [1],
        "b": 1.2346,
        "c": {"d": 123460.0},
    }
