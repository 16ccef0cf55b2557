"""JSON into columns: what json.loads says of a value is what its columns hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from located import located
from penstock.pipeline.values import decoding
from penstock.pipeline.values.ddl import parse_ddl
from penstock.pipeline.values.decoding import Decoded
from penstock.pipeline.values.json_decoder import JsonDecoder
from random_json import COLUMNS, as_column, ddl_of, objects

DDL = (
    "id BIGINT, small INT, name STRING, price DOUBLE, ok BOOLEAN, tags ARRAY<STRING>, "
    "origin STRUCT<city: STRING, zip: INT>, counts MAP<STRING, BIGINT>, "
    "lines ARRAY<STRUCT<item: STRING, at: ARRAY<INT>>>"
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-(2**31), 2**31 - 1)


def fields(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that lack any of the fields, or have null for them."""
    return st.fixed_dictionaries(
        {}, optional={name: st.none() | each for name, each in strategies.items()}
    )


OBJECTS = fields(
    id=NUMBER,
    small=SMALL,
    name=TEXT,
    price=st.floats(allow_nan=False, allow_infinity=False),
    ok=st.booleans(),
    tags=st.lists(st.none() | TEXT, max_size=4),
    origin=fields(city=TEXT, zip=SMALL),
    counts=st.dictionaries(TEXT, st.none() | NUMBER, max_size=3),
    lines=st.lists(st.none() | fields(item=TEXT, at=st.lists(SMALL, max_size=3)), max_size=3),
    other=st.recursive(TEXT | NUMBER | st.none(), lambda inner: st.lists(inner, max_size=3)),
)


def decode(values: list[bytes], ddl: str = DDL) -> Decoded:
    return JsonDecoder(parse_ddl(ddl)).decode(located(values))


@given(objects=st.lists(OBJECTS, max_size=8), spread=st.booleans(), ascii_only=st.booleans())
def test_columns_are_what_the_standard_library_reads(
    objects: list[dict[str, Any]], *, spread: bool, ascii_only: bool
) -> None:
    values = [
        json.dumps(each, indent=2 if spread else None, ensure_ascii=ascii_only).encode()
        for each in objects
    ]
    rows, faults = decode(values)
    assert not faults
    assert rows.to_pylist() == [as_column(each, parse_ddl(DDL)) for each in objects]


@given(columns=COLUMNS, data=st.data())
def test_columns_of_any_type_are_what_the_standard_library_reads(
    columns: dict[str, Any], data: st.DataObject
) -> None:
    written = data.draw(st.lists(objects(columns), max_size=5))
    values = [json.dumps(each, ensure_ascii=data.draw(st.booleans())).encode() for each in written]
    rows, faults = decode(values, ddl_of(columns))
    assert not faults
    rows.validate(full=True)
    expected = parse_ddl(ddl_of(columns))
    assert rows.to_pylist() == [as_column(each, expected) for each in written]


@given(values=st.lists(st.binary(max_size=40) | st.text('{}[]":,1-e.\\u0 tnfalsr', max_size=30)))
def test_whatever_comes_is_a_row_or_a_reason(values: list[bytes | str]) -> None:
    encoded = [each if isinstance(each, bytes) else each.encode() for each in values]
    rows, faults = decode(encoded)
    assert len(rows) == len(encoded)
    bad = {each.row for each in faults}
    for row, value in enumerate(encoded):
        if row not in bad:
            json.loads(value)  # It is JSON, then.
        else:
            assert rows[row].as_py() is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "it ends too early (byte 0)"),
        (b'{"id":1', "id: it ends too early (byte 7)"),
        (b'{"id":1}}', "bytes that are left behind its end (byte 8)"),
        (b'{"id":1,}', "a byte that can't stand there (byte 8)"),
        (b"[1]", "a value of another type (byte 0)"),
        (b'{"id":"7"}', "id: a value of another type (byte 6)"),
        (b'{"id":1.5}', "id: a value of another type (byte 9)"),
        (b'{"id":9223372036854775808}', "id: a number out of the type's range"),
        (b'{"small":2147483648}', "small: a number out of the type's range"),
        (b'{"id":01}', "id: a byte that can't stand there (byte 6)"),
        (b'{"price":NaN}', "price: a byte that can't stand there (byte 9)"),
        (b'{"price":"1.5"}', "price: a value of another type"),
        (b'{"id":1,"id":1}', "id: a field that is there twice"),
        (b'{"lines":[{"at":[1,"x"]}]}', "lines[].at[]: a value of another type (byte 19)"),
        (b'{"origin":{"zip":{}}}', "origin.zip: a value of another type"),
        (b'{"name":"\xff"}', "its bytes are no UTF-8"),
        (b'{"name":"\\ud800"}', "name: an escape that stands for no character"),
        (b'{"name":"\n"}', "name: a byte that can't stand there"),
        (b'{"x":' * 600 + b"1" + b"}" * 600, "it is nested too deeply"),
        (b"[" * 1_000_000, "a value of another type (byte 0)"),
        (b'{"x":' + b"[" * 1_000_000, "it is nested too deeply"),
    ],
)
def test_a_bad_value_costs_its_own_row(value: bytes, reason: str) -> None:
    rows, (fault,) = decode([b'{"id":1,"tags":["a"]}', value, b'{"id":3,"tags":["b","c"]}'])
    assert fault.row == 1
    assert fault.reason.startswith(reason)
    first, bad, last = rows.to_pylist()
    assert (first["id"], first["tags"], last["id"], last["tags"]) == (1, ["a"], 3, ["b", "c"])
    assert bad is None


def test_nothing_stays_of_a_record_that_ends_too_early() -> None:
    ddl = "a ARRAY<ARRAY<STRING>>, b MAP<STRING, ARRAY<STRUCT<c: INT, d: ARRAY<INT>>>>, e INT"
    cut = b'{"b":{"k":[{"d":[1,2]},{"c":3}],"l":[null]},"a":[["x"],[],null,["y","z"]],"e":1}'
    whole = b'{"a":[[],["s","t"]],"b":{"m":[{"c":4,"d":[5]}]},"e":2}'
    values = [each for size in range(len(cut)) for each in (whole, cut[:size])]
    rows, faults = decode([*values, whole], ddl)
    assert [each.row for each in faults] == list(range(1, len(values), 2))
    expected = as_column(json.loads(whole), parse_ddl(ddl))
    assert rows.to_pylist() == [expected, None] * len(cut) + [expected]


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("origin STRUCT<city: STRING, zip: INT>, zip INT", {"origin": {"city": "Ulm"}, "zip": 7}),
        ("a STRUCT<b: STRUCT<c: INT, d: INT>>, d INT", {"a": {"b": {"c": 1}}, "d": 7}),
        ("at ARRAY<INT>, item STRING", {"at": [1], "item": "x"}),
        ("at ARRAY<INT>, element STRING", {"at": [1], "element": "x"}),
        ("counts MAP<STRING, INT>, key INT, value INT", {"counts": {"a": 1}, "key": 2, "value": 3}),
    ],
)
def test_a_field_is_its_own_structs_behind_another_of_its_name(ddl: str, value: Any) -> None:
    rows, faults = decode([json.dumps(value).encode()], ddl)
    assert not faults
    assert rows.to_pylist() == [as_column(value, parse_ddl(ddl))]


def test_null_is_a_row_without_columns() -> None:
    rows, faults = decode([b" null ", b"{}"])
    assert not faults
    assert rows.to_pylist() == [None, dict.fromkeys(parse_ddl(DDL).names)]


def test_text_takes_any_json_as_it_is_written() -> None:
    rows, faults = decode([b'{"a": {"b": [1, "x"]}}', b'{"a": 1.50}', b'{"a": true}'], "a STRING")
    assert not faults
    assert [each["a"] for each in rows.to_pylist()] == ['{"b": [1, "x"]}', "1.50", "true"]


def test_times_and_decimals() -> None:
    ddl = "at TIMESTAMP, day DATE, wall TIMESTAMP_NTZ, price DECIMAL(6, 2)"
    good = [
        ({"at": "2024-03-01T12:00:00Z"}, "2024-03-01 12:00:00+00:00"),
        ({"at": "2024-03-01T12:00:00.123456789+02:00"}, "2024-03-01 10:00:00.123456+00:00"),
        ({"at": "2024-03-01 12:00:00"}, "2024-03-01 12:00:00+00:00"),
        ({"at": "2024-03-01"}, "2024-03-01 00:00:00+00:00"),
        ({"day": "2024-02-29"}, "2024-02-29"),
        ({"wall": "2024-03-01T12:00:00.5"}, "2024-03-01 12:00:00.500000"),
        ({"price": 12.5}, "12.50"),
        ({"price": 1e3}, "1000.00"),
    ]
    bad = [{"at": "yesterday"}, {"at": 7}, {"day": "2023-02-29"}, {"price": 1.234}, {"price": 1e9}]
    values = [json.dumps(each).encode() for each, _ in good]
    rows, faults = decode(values, ddl)
    assert not faults
    assert [str(next(filter(None, each.values()))) for each in rows.to_pylist()] == [
        said for _, said in good
    ]
    mixed = [values[0], *(json.dumps(each).encode() for each in bad), values[-1]]
    rows, faults = decode(mixed, ddl)
    assert [each.row for each in faults] == [1, 2, 3, 4, 5]
    assert faults[0].reason == "at: 'yesterday' is no timestamp[us, tz=UTC]"
    assert [each is None for each in rows.to_pylist()] == [False, *[True] * 5, False]


def test_a_bad_time_in_a_list_costs_its_record() -> None:
    ddl = "days ARRAY<STRUCT<day: DATE>>"
    days = [["2024-01-01", "2024-01-02"], [], ["2024-01-03", "never", "2024-01-04"], ["2024-01-05"]]
    values = [json.dumps({"days": [{"day": day} for day in each]}).encode() for each in days]
    rows, (fault,) = decode(values, ddl)
    assert fault == (2, "days[].day: 'never' is no date32[day]")
    assert [each and len(each["days"]) for each in rows.to_pylist()] == [2, 0, None, 1]


def test_values_are_cut_where_their_cells_take_too_much_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decoding, "ROOM_BYTES", 10_000)
    values = [json.dumps({"id": n, "tags": ["x"] * (n % 5)}).encode() for n in range(200)]
    values[70] = b"bad"
    rows, (fault,) = decode(values)
    assert fault.row == 70
    found = rows.to_pylist()
    assert [each and each["id"] for each in found] == [n if n != 70 else None for n in range(200)]
    assert [len(each["tags"]) for each in found if each] == [n % 5 for n in range(200) if n != 70]


def test_many_columns_are_found_by_their_names() -> None:
    names = [f"column{n}" for n in range(300)]
    ddl = ", ".join(f"{name} INT" for name in names)
    value = {name: n for n, name in enumerate(names)}
    backwards = dict(reversed(value.items()))
    rows, faults = decode([json.dumps(each).encode() for each in (value, backwards)], ddl)
    assert not faults
    assert rows.to_pylist() == [value, value]
