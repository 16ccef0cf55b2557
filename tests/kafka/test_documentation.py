"""Goal: the pages say what is registered, and the protocol's page which test shows it."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.kafka.handlers import HANDLERS
from penstock.kafka.wire import Versions
from penstock.kafka.wire.apis import APIS

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"
ROW = re.compile(r"^\| (\d+) \| (\w+) \| (\d+)-(\d+) \|", re.MULTILINE)


def test_the_table_of_apis_is_what_is_served() -> None:
    told = {
        (int(key), name, int(first), int(last))
        for key, name, first, last in ROW.findall(PAGE.read_text(encoding="utf-8"))
    }
    served = {
        (key, handler.api.name, handler.versions.first, handler.versions.last)
        for key, handler in HANDLERS.items()
    }
    assert told == served


def test_each_handler_lies_in_the_file_of_its_number() -> None:
    for key, handler in HANDLERS.items():
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", handler.api.name).lower()
        assert handler.handle.__module__ == f"penstock.kafka.handlers.api_{key:02d}_{snake}"


PROTOCOL_PAGE = PAGE.with_name("kafka-protocol.md")
API_ROW = re.compile(r"^\| (\d+) \| (\w+) \| (\d+)-(\d+) \| ([^|]+) \| ([^|]*)\|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
BROKERS_ONLY = {*range(4, 8), 27, *range(52, 55), 56, 58, 59, 62, 63, 67, 70, 73, *range(82, 88)}
"""What only brokers and controllers send to one another."""

OUR_OWN = {30000, 30001, 30002, 30003, 30004, 30005, 30006}


def in_words(versions: Versions) -> str:
    return f"{versions.first}-{versions.last}"


def test_every_api_that_clients_use_has_a_row_that_holds() -> None:
    rows = {int(row[0]): row for row in API_ROW.findall(PROTOCOL_PAGE.read_text(encoding="utf-8"))}
    of_clients = {each.key: each for each in APIS if each.key not in BROKERS_ONLY | OUR_OWN}
    assert set(rows) == set(of_clients)
    for key, (_, name, first, last, here, shown) in rows.items():
        known = of_clients[key]
        assert (name, f"{first}-{last}") == (known.name, in_words(known.versions))
        if key in HANDLERS:
            assert here == in_words(HANDLERS[key].versions), name
            assert TEST.search(shown), f"nothing shows {name}"
        else:
            assert here.startswith(("not yet: ", "never: ")), name


def test_every_test_that_the_page_names_is_there() -> None:
    named = TEST.findall(PROTOCOL_PAGE.read_text(encoding="utf-8"))
    root = PAGE.parents[1]
    missing = [
        (file, test) for file, test in named if f"def {test}(" not in (root / file).read_text()
    ]
    assert len(named) > 60
    assert missing == []


def test_every_api_is_served_from_its_first_version() -> None:
    assert {handler.versions.first for handler in HANDLERS.values()} == {0}
