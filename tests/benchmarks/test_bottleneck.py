"""Which part was the limit of a run."""

from __future__ import annotations

import pytest

from versus.bottleneck import bottleneck


@pytest.mark.parametrize(
    ("client_busiest", "client", "broker_busiest", "broker", "expected"),
    [
        (0.5, 0.5, 9.0, 9.0, "broker"),
        (0.5, 0.5, 3.0, 18.0, "broker"),
        (9.0, 9.0, 3.0, 4.0, "client"),
        (9.0, 9.0, 9.0, 9.0, "broker"),
        (4.0, 8.0, 4.0, 10.0, "processor"),
        (2.0, 2.0, 2.0, 2.0, "waiting"),
    ],
)
def test_what_could_not_go_faster(
    client_busiest: float, client: float, broker_busiest: float, broker: float, expected: str
) -> None:
    found = bottleneck(
        seconds=10.0,
        client_busiest=client_busiest,
        client=client,
        broker_busiest=broker_busiest,
        broker=broker,
        others=1.0,
        cores=2,
        shared=True,
    )
    assert found == expected


def test_cores_of_their_own_do_not_add_up() -> None:
    found = bottleneck(
        seconds=10.0,
        client_busiest=6.0,
        client=8.0,
        broker_busiest=6.0,
        broker=8.0,
        others=0.0,
        cores=1,
        shared=False,
    )
    assert found == "waiting"


@pytest.mark.parametrize(
    ("others", "shared", "expected"),
    [(3.9, True, "broker"), (4.0, True, "others"), (4.0, False, "broker"), (8.0, False, "others")],
)
def test_other_programs_spoil_a_run(others: float, shared: bool, expected: str) -> None:
    found = bottleneck(
        seconds=10.0,
        client_busiest=1.0,
        client=1.0,
        broker_busiest=10.0,
        broker=10.0,
        others=others,
        cores=2,
        shared=shared,
    )
    assert found == expected
