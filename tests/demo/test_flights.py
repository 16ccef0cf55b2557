from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.demo.digest import Digest
from penstock.demo.flights import (
    CarrierDelay,
    Event,
    delays_by_carrier,
    load_flights,
    read_events,
    share,
    write_events,
)


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    return load_flights()


def test_all_flights_of_the_year_are_there(flights: pa.Table) -> None:
    assert flights.num_rows == 336_776
    assert sum(row.flights for row in delays_by_carrier(flights)) == 336_776


def test_an_event_is_a_flight_as_json(flights: pa.Table, tmp_path: Path) -> None:
    file = tmp_path / "events"
    write_events(flights.slice(0, 900), file)
    first = next(read_events(file, 0, 1))
    assert first.key == "UA1545"
    assert json.loads(first.value) == flights.slice(0, 1).to_pylist()[0]
    # A flight that was cancelled has no delay: that is null in JSON, never NaN.
    values = [json.loads(event.value) for event in read_events(file, 0, 1)]
    assert [row["arr_delay"] for row in values] == flights["arr_delay"].slice(0, 900).to_pylist()
    assert None in [row["arr_delay"] for row in values]


def test_shares_make_up_the_whole(flights: pa.Table, tmp_path: Path) -> None:
    file = tmp_path / "events"
    expected = write_events(flights.slice(0, 1000), file)
    shares = [list(read_events(file, part, 3)) for part in range(3)]
    assert [len(events) for events in shares] == [len(share(1000, part, 3)) for part in range(3)]
    found = Digest()
    for event in (event for events in shares for event in events):
        found.add(event.key.encode(), event.value.encode())
    assert found == expected


def test_the_mean_leaves_out_what_never_arrived() -> None:
    flights = pa.table({"carrier": ["B", "A", "A", "A"], "arr_delay": [None, 10, None, -5]})
    assert delays_by_carrier(flights) == [CarrierDelay("A", 3, 2.5), CarrierDelay("B", 1, None)]


def test_events_are_told_apart_by_name() -> None:
    assert Event("k", "v")._asdict() == {"key": "k", "value": "v"}
