"""What `produce` makes of its input and what `consume` prints of it: bytes, headers, nulls."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_process import BrokerProcess
from command_line import Penstock
from penstock.cli.failure import UsageError
from penstock.cli.message_input import InputError, Shape, messages, parsed_header
from penstock.cli.message_json import MessageError, message_object, parsed_message
from penstock.clients.kafka.record_batch import StoredRecord

MESSAGES: list[dict[str, Any]] = [
    {"key": "a", "value": "0xff", "headers": []},
    {"key": "a", "value_base64": "/w==", "headers": [{"name": "h", "value_base64": "/wA="}]},
    {"key_base64": "gA==", "value": None, "headers": [{"name": "h", "value": None}]},
    {
        "key": None,
        "value": "",
        "headers": [{"name": "h", "value": "1"}, {"name": "h", "value": "2"}],
    },
]
TIME = "2026-01-31T12:00:00.007000+00:00"


def lines_of(objects: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def objects_in(text: str, *without: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    return [{name: each[name] for name in each if name not in without} for each in found]


def test_json_tells_text_from_bytes_and_null(penstock: Penstock, topic: str) -> None:
    written = [each | {"timestamp": TIME} for each in MESSAGES]
    penstock("produce", topic, "-p", "1", "--json", stdin=lines_of(written))
    text = penstock("consume", topic, "--format", "json").stdout
    assert objects_in(text, "topic", "partition", "offset") == written
    assert objects_in(text)[2]["offset"] == 2


def test_what_is_read_as_json_can_be_written_as_json(penstock: Penstock, topic: str) -> None:
    penstock("produce", topic, "-p", "1", "--json", stdin=lines_of(MESSAGES))
    text = penstock("consume", topic, "-f", "json").stdout
    penstock("produce", topic, "-p", "2", "--json", stdin=text)
    again = penstock("consume", topic, "-p", "2", "-f", "json").stdout
    assert objects_in(again, "partition") == objects_in(text, "partition")


def test_a_template_prints_what_it_names(penstock: Penstock, topic: str) -> None:
    written = [each | {"timestamp": TIME} for each in MESSAGES[2:]]
    penstock("produce", topic, "-p", "1", "--json", "-H", "all=x=y", stdin=lines_of(written[1:]))
    printed = penstock("consume", topic, "-f", r"%t %p %o %T %k/%K %s/%S %h %%\x21\n").stdout
    assert printed == f"{topic} 1 0 1769860800007 /-1 /0 h=1,h=2,all=x=y %!\n"


def test_raw_bytes_go_in_and_come_out(shared_server: BrokerProcess, topic: str) -> None:
    data = bytes(range(256)) * 3

    def run(*words: str, stdin: bytes = b"") -> bytes:
        command = [sys.executable, "-m", "penstock", *words, "--server", shared_server.kafka]
        return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout

    run("produce", topic, "-p", "0", "--whole", stdin=data)
    assert run("consume", topic, "-f", "%s") == data
    assert run("consume", topic) == b"0x" + data.hex().encode() + b"\n"


def test_nulls_are_written_and_shown(penstock: Penstock, topic: str) -> None:
    penstock("produce", topic, "-p", "1", "-k", r"\t", "--null", "-", stdin="k\t-\n-\tv\n\t\n")
    records = objects_in(penstock("consume", topic, "-f", "json").stdout)
    pairs = [(record["key"], record["value"]) for record in records]
    assert pairs == [("k", None), (None, "v"), ("", "")]
    assert penstock("consume", topic, "--null", "NULL").stdout == "k\tNULL\nv\n\t\n"
    assert penstock("consume", topic, "--null", "?", "-f", "%k=%s ").stdout == "k=? ?=v = "


def test_a_key_and_headers_of_all_messages(penstock: Penstock, topic: str) -> None:
    words = ("--key", "42", "-H", "trace=a1", "--header", "none", "-D", r"\x00")
    penstock("produce", topic, *words, stdin="one\ntwo\0three")
    records = objects_in(penstock("consume", topic, "-f", "json").stdout)
    assert [record["value"] for record in records] == ["one\ntwo", "three"]
    assert {record["key"] for record in records} == {"42"}
    headers = [{"name": "trace", "value": "a1"}, {"name": "none", "value": None}]
    assert records[0]["headers"] == records[1]["headers"] == headers


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("start", ""),
        ("end", "01234"),
        ("3", "012"),
        ("-2", "012"),
        ("@0", ""),
        ("@2999-01-01", "01234"),
        ("99", "01234"),
    ],
)
def test_reading_stops_before_the_place_that_was_named(
    penstock: Penstock, topic: str, until: str, expected: str
) -> None:
    penstock("produce", topic, "-p", "1", stdin="\n".join("01234"))
    text = penstock("consume", topic, "--until", until, "-p", "1").stdout
    assert "".join(text.split()) == expected


def test_following_ends_where_it_is_told_to(
    shared_server: BrokerProcess, penstock: Penstock, topic: str
) -> None:
    penstock("produce", topic, "-p", "1", stdin="a\nb\n")
    words = ["consume", topic, "-p", "1", "--follow", "--until", "3", "-s", shared_server.kafka]
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        penstock("produce", topic, "-p", "1", stdin="c\nd\n")
        assert process.stdout.read() == "b\nc\n"
    assert process.returncode == 0


def test_lines_fit_a_topic_that_takes_only_small_batches(penstock: Penstock, topic: str) -> None:
    name = f"{topic}-small"
    penstock("topic", "create", name, "--config", "max.message.bytes=500")
    lines = [f"line {number}" for number in range(200)]
    penstock("produce", name, stdin="\n".join(lines))
    assert penstock("consume", name).stdout.splitlines() == lines
    said = penstock("produce", name, "--whole", stdin="x" * 1000, code=1).stderr
    assert "MESSAGE_TOO_LARGE" in said


def test_a_line_without_the_separator_is_named(penstock: Penstock, topic: str) -> None:
    said = penstock("produce", topic, "-k", ":", stdin="a:1\nb\nc:3\n", code=1).stderr
    assert 'message 2 of the input: no ":" between key and value' in said
    assert "written before it: 1 message" in said
    assert penstock("consume", topic).stdout == "a\t1\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-p", "9"], 2, "has partitions 0 to 2, not 9"),
        (["-k", ""], 2, "--key-separator: it is empty; what is needed is a text such as ':'"),
        (["-D", ""], 2, "--delimiter: it is empty"),
        (["-H", "=x"], 2, "what is needed is NAME=VALUE"),
        (["--key", "a", "-k", ":"], 2, "give one of them"),
        (["--json", "--whole"], 2, "--json says all of a message"),
        (["--json"], 1, "message 1 of the input: no JSON"),
    ],
)
def test_what_cannot_be_written_is_refused_with_a_reason(
    penstock: Penstock, topic: str, words: list[str], code: int, said: str
) -> None:
    assert said in penstock("produce", topic, *words, stdin="x\n", code=code).stderr
    assert penstock("consume", topic).stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-f", "tabel"], "what is needed is table, json or a template such as '%k %s\\n'"),
        (["-f", "%k %v"], '"%v" is refused; there are %s value, %k key'),
        (["-f", "100%"], '"%" is refused'),
        (["-u", "soon"], '--until: "soon" is refused'),
        (["-o", "@99999999999999999999"], '--offset: "@99999999999999999999" is refused'),
        (["-F", "-u", "@0"], "without --follow"),
    ],
)
def test_what_cannot_be_printed_is_refused_with_a_reason(
    penstock: Penstock, topic: str, words: list[str], said: str
) -> None:
    assert said in penstock("consume", topic, *words, code=2).stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "no JSON: Expecting value"),
        ("\xff", "it is not UTF-8"),
        ("[1]", "not a JSON object"),
        ("{}", 'there is no "value"'),
        ('{"vlaue": "x"}', 'unknown name "vlaue"'),
        ('{"value": 5}', '"value" is text or null'),
        ('{"value": "a", "value_base64": "YQ=="}', 'both "value" and "value_base64"'),
        ('{"value_base64": "?"}', '"value_base64" is no base64'),
        ('{"value_base64": 5}', '"value_base64" is no base64'),
        ('{"value": "\\ud800"}', "half a surrogate pair"),
        ('{"value": "x", "headers": {}}', '"headers" is a list'),
        ('{"value": "x", "headers": [{"value": "x"}]}', 'a header has a "name"'),
        ('{"value": "x", "headers": [{"name": "\\ud800"}]}', "half a surrogate pair"),
        ('{"value": "x", "timestamp": "soon"}', '"timestamp" is such as'),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_an_object_that_is_no_message_is_refused(text: str, said: str) -> None:
    with pytest.raises(MessageError, match=re.escape(said)):
        parsed_message(text.encode("latin-1"), now_ms=0)


def test_a_header_has_a_name_that_is_text() -> None:
    assert parsed_header("a=\udcff") == ("a", b"\xff")
    with pytest.raises(UsageError, match="what is needed is NAME=VALUE"):
        parsed_header("\udcff=a")


def test_a_time_that_no_calendar_has_is_null() -> None:
    assert message_object("t", 0, StoredRecord(0, 1 << 62, None, None, []))["timestamp"] is None


class Trickle(io.BytesIO):
    """Hands out so many bytes at once."""

    def __init__(self, data: bytes, at_once: int) -> None:
        super().__init__(data)
        self.at_once = at_once

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self.at_once)


@given(st.text("ab,", max_size=30), st.sampled_from([b",", b"a,", b",,", b"aa"]), st.integers(1, 7))
def test_input_is_cut_the_same_however_it_arrives(text: str, delimiter: bytes, size: int) -> None:
    data = text.encode()
    batches = messages(Trickle(data, size), Shape(delimiter))
    values = [record.value for batch in batches for record in batch]
    *whole, rest = data.split(delimiter)
    assert values == whole + ([rest] if rest else [])


def test_what_was_read_is_handed_out_before_a_mistake_and_before_more_is_read() -> None:
    batches = messages(Trickle(b"a:1\nb:2\nc\n", 4), Shape(separator=b":"))
    assert [record.value for record in next(batches)] == [b"1"]
    assert [record.value for record in next(batches)] == [b"2"]
    with pytest.raises(InputError, match="message 3"):
        next(batches)
