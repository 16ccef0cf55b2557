"""The schema language."""

from __future__ import annotations

import pytest

from penstock.kafka.wire.schema import Default, Versions, parse, parse_versions

TEXT = """\
# Example, API key 99
versions 0-5
flexible 4+

request
    name        string?3+        = null
    parts       []Part     1-4
        size    int64      2+    = -1
        kind    string           = "x"
        shared  []Shared?
    flag        bool       4+    tag 0   = true

request struct Shared
    value  int32

response
    error_code  int16
"""


def test_parse() -> None:
    schema = parse(TEXT, "Example")
    assert schema.versions == Versions(0, 5)
    assert schema.flexible == Versions(4, 5)
    assert list(schema.roots) == ["request", "response"]
    name, parts, flag = schema.roots["request"].fields
    assert (name.type, name.is_array, name.versions) == ("string", False, Versions(0, 5))
    assert (name.nullable, name.default) == (Versions(3, 5), Default(None))
    assert (parts.type, parts.is_array, parts.versions) == ("Part", True, Versions(1, 4))
    assert parts.default is None
    assert (flag.tag, flag.default, flag.versions) == (0, Default(True), Versions(4, 5))
    assert schema.roots["response"].name == "ExampleResponse"


def test_structs_in_place_and_shared() -> None:
    schema = parse(TEXT, "Example")
    root, part, shared = schema.structs["request"]
    assert (root.name, part.name, shared.name) == ("ExampleRequest", "Part", "Shared")
    size, kind, values = part.fields
    assert size.versions == Versions(2, 4), "the versions of a field are those of its struct"
    assert kind.default == Default("x")
    assert values.struct is shared
    assert values.nullable == Versions(1, 4)


@pytest.mark.parametrize(
    ("text", "versions"), [("3", (3, 3)), ("3-7", (3, 7)), ("3+", (3, 9)), ("0+", (0, 9))]
)
def test_versions(text: str, versions: tuple[int, int]) -> None:
    assert parse_versions(text, 9) == Versions(*versions)
