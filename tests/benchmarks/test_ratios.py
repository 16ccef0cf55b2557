"""Comparisons: round against round, the median, and who loses."""

from __future__ import annotations

from typing import Any

import pytest

from versus.ratios import CPU_GB, SPEED, Comparison, Spread, compare, measures

LOAD = "produce-1024-default"


def run(broker: str, number: int, *, seconds: float, cpu: float = 1.0) -> dict[str, Any]:
    return {
        "broker": broker,
        "round": number,
        "load": LOAD,
        "messages": 1_000_000,
        "load_seconds": seconds,
        "broker_cpu_seconds": cpu,
        "broker_resident_mib": 100.0,
        "disk_bytes": 1_100_000_000,
        "limit": "broker",
    }


def of(runs: list[dict[str, Any]], measure: Any) -> Comparison:
    (found,) = (one for one in compare(runs, LOAD) if one.measure is measure)
    return found


def test_spread_is_least_median_most() -> None:
    assert Spread.over([3.0, 1.0, 10.0, 2.0]) == Spread(1.0, 2.5, 10.0)
    assert Spread.over([]) is None


def test_throughput_is_of_the_values_alone() -> None:
    found = of([run("penstock", 1, seconds=2.0)], SPEED)
    assert found.penstock is not None
    assert found.penstock.median == pytest.approx(512.0)


def test_rounds_are_compared_with_their_own_neighbours() -> None:
    # Both get slower from round to round: pair by pair Penstock is always twice as fast.
    runs = [
        run(broker, number, seconds=number * factor)
        for number in (1, 2, 4)
        for broker, factor in (("penstock", 1.0), ("kafka", 2.0))
    ]
    assert of(runs, SPEED).ratio == Spread(2.0, 2.0, 2.0)


def test_cpu_is_a_gigabyte_of_values() -> None:
    found = of([run("penstock", 1, seconds=1.0, cpu=2.048)], CPU_GB)
    assert found.penstock is not None
    assert found.penstock.median == pytest.approx(2.0)


@pytest.mark.parametrize(("seconds", "loses"), [(0.5, False), (1.01, False), (1.2, True)])
def test_less_throughput_is_a_loss_beyond_noise(seconds: float, loses: bool) -> None:
    runs = [run("penstock", 1, seconds=seconds), run("kafka", 1, seconds=1.0)]
    assert of(runs, SPEED).penstock_loses is loses


@pytest.mark.parametrize(("cpu", "loses"), [(0.5, False), (2.0, True)])
def test_more_cpu_is_a_loss(cpu: float, loses: bool) -> None:
    runs = [run("penstock", 1, seconds=1.0, cpu=cpu), run("kafka", 1, seconds=1.0)]
    assert of(runs, CPU_GB).penstock_loses is loses


def test_a_failure_is_kept_and_lost() -> None:
    failed = {"broker": "penstock", "round": 1, "load": LOAD, "failure": "it broke"}
    found = of([failed, run("kafka", 1, seconds=1.0)], SPEED)
    assert found.failures == {"penstock": "it broke"}
    assert found.ratio is None
    assert found.penstock_loses


def test_without_a_peer_there_is_no_ratio_and_no_loss() -> None:
    found = of([run("penstock", 1, seconds=1.0)], SPEED)
    assert (found.peer, found.ratio, found.penstock_loses) == (None, None, False)


def test_transactions_are_compared_and_not_their_messages() -> None:
    load = "transactions-100"
    ours = run("penstock", 1, seconds=2.0, cpu=30.0) | {"load": load}
    found = {one.measure: one.penstock for one in compare([ours], load)}
    second, cpu = found[measures(load)[0]], found[measures(load)[-1]]
    assert second == Spread.over([5_000.0])
    assert cpu == Spread.over([3.0])
