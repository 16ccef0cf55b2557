from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.pipeline.jobs.config import (
    Deduplication,
    DefinitionError,
    Expectation,
    Otherwise,
    Parsing,
    PipelineConfig,
    TopicTarget,
    WriteMode,
)
from penstock.pipeline.jobs.definition import load
from penstock.pipeline.jobs.settings import table_config
from penstock.pipeline.jobs.template import TEMPLATE
from penstock.pipeline.source.options import ReadMode
from penstock.pipeline.tables.interface import ChangeForm
from penstock.pipeline.values.options import OnParseError

SMALL = """
[read]
server = "127.0.0.1:9092"
topics = ["orders"]
[write]
table = "orders-table"
"""

WHOLE = """
[read]
server = "127.0.0.1:9092"
topics = ["orders", "returns", "orders"]
starting_offsets = "latest"
read_mode = "wire"
headers = true
ignore_data_loss = true

[parse]
schema = "orders.avsc"
on_error = "deadLetter"
dead_letter = "rejected"

[[expect]]
name = "has a price"
that = "price > 0"
otherwise = "quarantine"

[[expect]]
name = "has a name"
that = "name is not null"

[deduplicate]
by = ["id"]
time = "placed"
within = "10 minutes"

[write]
table = "orders-table"
mode = "upsert"
key = ["id"]
partition_by = ["country"]
checkpoint = "kept"

[run]
every = "1.5 s"
batch_rows = 10
master = "local[1]"
"""


def defined(folder: Path, text: str) -> PipelineConfig:
    file = folder / "orders.toml"
    file.write_text(text)
    return load(file)


def test_a_small_definition_leaves_all_else_as_it_is_without_one(tmp_path: Path) -> None:
    table = tmp_path / "orders-table"
    assert defined(tmp_path, SMALL) == PipelineConfig("127.0.0.1:9092", ("orders",), table)


def test_what_init_writes_is_the_small_definition(tmp_path: Path) -> None:
    names = {"server": "127.0.0.1:9092", "topic": "orders", "table": "orders-table"}
    text = TEMPLATE.format(**names, file="orders.toml")
    assert defined(tmp_path, text) == defined(tmp_path, SMALL)


def test_all_that_init_shows_can_be_said(tmp_path: Path) -> None:
    names = {"server": "127.0.0.1:9092", "topic": "orders", "table": "orders-table"}
    lines = TEMPLATE.format(**names, file="orders.toml").splitlines()
    shown = [line.removeprefix("# ") for line in lines if " = " in line or "[" in line[:4]]
    said = "\n".join(shown).replace('on_error = "fail"', 'on_error = "deadLetter"')
    appended = defined(tmp_path, said.replace('key = ["id"]', ""))
    assert appended.parsing
    assert appended.expectations
    assert appended.deduplication
    first, _, behind = said.partition("[deduplicate]")
    upserted = first + behind[behind.index("[write]") :].replace('"append"', '"upsert"')
    assert defined(tmp_path, upserted).key == ("id",)


def test_all_sections_are_read(tmp_path: Path) -> None:
    (tmp_path / "orders.avsc").touch()
    appended = WHOLE.replace('mode = "upsert"\nkey = ["id"]\n', "")
    assert defined(tmp_path, appended) == PipelineConfig(
        "127.0.0.1:9092",
        ("orders", "returns"),
        tmp_path / "orders-table",
        checkpoint=tmp_path / "kept",
        interval_seconds=1.5,
        starting_offsets="latest",
        read_mode=ReadMode.WIRE,
        batch_rows=10,
        include_headers=True,
        fail_on_data_loss=False,
        master="local[1]",
        parsing=Parsing(
            str(tmp_path / "orders.avsc"), OnParseError.DEAD_LETTER, tmp_path / "rejected"
        ),
        expectations=(
            Expectation("has a price", "price > 0", Otherwise.QUARANTINE),
            Expectation("has a name", "name is not null", Otherwise.KEEP),
        ),
        deduplication=Deduplication(("id",), "placed", 600.0),
        partition_by=("country",),
    )


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ("topics", "topcis", r"nothing is called read\.topcis: did you mean topics\?"),
        ("[write]", "[wirte]", r"nothing is called wirte: did you mean write\?"),
        ('topics = ["orders", "returns", "orders"]', "topics = []", r"read\.topics must be a list"),
        ('server = "127.0.0.1:9092"', "", r"read\.server must be a text; it is missing"),
        ('read_mode = "wire"', 'read_mode = "air"', "read_mode must be one of auto, log, wire"),
        ("headers = true", "headers = 1", "headers must be true or false; it is 1"),
        ('dead_letter = "rejected"', "", "dead_letter must be a folder"),
        ('on_error = "deadLetter"', "", "dead_letter must be a folder"),
        ('that = "price > 0"', "", r"expect\.that must be a text"),
        ('"has a name"', '"has a price"', "name must be another one for each expectation"),
        ('otherwise = "quarantine"', 'otherwise = "no"', "one of keep, drop, quarantine, fail"),
        ("[[expect]]", "[expect]", "expectations are sections"),
        ('within = "10 minutes"', 'within = "soon"', 'a time such as "10 seconds"'),
        ('within = "10 minutes"', "", 'a time such as "10 minutes"; it is missing'),
        ('mode = "upsert"', "", "key must be a list of columns"),
        ('key = ["id"]', "", "key must be a list of columns"),
        ("batch_rows = 10", "batch_rows = 0", "batch_rows must be a whole number above 0"),
        ('every = "1.5 s"', 'every = "0 s"', 'every must be a time such as "10 seconds"'),
        ("[run]", "[run", "is no TOML"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(
    tmp_path: Path, before: str, after: str, error: str
) -> None:
    text = WHOLE.replace("[[expect]]", "", 1) if after == "[expect]" else WHOLE
    assert before in text
    if after == "[expect]":
        text = SMALL + "[expect]\n"
    with pytest.raises(DefinitionError, match=error):
        defined(tmp_path, text.replace(before, after))


TO_TOPIC = """
[read]
server = "127.0.0.1:9092"
topics = ["orders"]
[write]
topic = "checked"
"""


def test_columns_may_be_more_than_a_file_name_can_have(tmp_path: Path) -> None:
    columns = ", ".join(f"column{number} BIGINT" for number in range(500))
    file = tmp_path / "orders.toml"
    file.write_text(f'{SMALL}[parse]\nschema = "{columns}"\n')
    parsing = load(file).parsing
    assert parsing is not None
    assert parsing.schema == columns


def test_a_topic_can_be_written(tmp_path: Path) -> None:
    config = defined(tmp_path, TO_TOPIC)
    assert config.target_topic == TopicTarget("checked", "127.0.0.1:9092")
    assert (config.target, config.table) == ("checked", tmp_path / "checked-state")
    elsewhere = defined(tmp_path, TO_TOPIC + 'server = "other:9092"\nstate = "kept"\n')
    assert elsewhere.target_topic == TopicTarget("checked", "other:9092")
    assert elsewhere.table == tmp_path / "kept"


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ('"checked"', '"orders"', "topic must be another one than those that are read"),
        ('"checked"', '"checked"\ntable = "t"', "table must be left out, for it is about a table"),
        ('"checked"', '"checked"\nkey = ["id"]', "key must be left out"),
        ('topic = "checked"', 'table = "t"\nstate = "s"', "state must be left out"),
        (
            '"checked"',
            '"checked"\nserver = "iggy://h:1"',
            "server must be of Kafka's or Pulsar's protocol",
        ),
    ],
)
def test_a_table_and_a_topic_are_two_things(
    tmp_path: Path, before: str, after: str, error: str
) -> None:
    assert before in TO_TOPIC
    with pytest.raises(DefinitionError, match=error):
        defined(tmp_path, TO_TOPIC.replace(before, after))


DEBEZIUM = """
[read]
server = "127.0.0.1:9092"
topics = ["changes"]
[parse]
schema = "before STRUCT<id: BIGINT>, after STRUCT<id: BIGINT>, op STRING"
[write]
table = "t"
format = "delta"
mode = "upsert"
key = ["id"]
changes = "debezium"
"""


UPSERT = {"mode": WriteMode.UPSERT, "key": ("id",)}


def test_envelopes_of_debezium_can_be_followed(tmp_path: Path) -> None:
    config = defined(tmp_path, DEBEZIUM)
    assert table_config(config).changes is ChangeForm.DEBEZIUM


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ('mode = "upsert"\nkey = ["id"]', "", 'changes must be left out, or given with mode = "up'),
        ("debezium", "debezum", "changes must be one of rows, debezium"),
        (
            DEBEZIUM[DEBEZIUM.index("[parse]") : DEBEZIUM.index("[write]")],
            "",
            r"\[parse\] is missing, with a schema of op, before and after",
        ),
    ],
)
def test_envelopes_need_keys_and_columns(
    tmp_path: Path, before: str, after: str, error: str
) -> None:
    assert before in DEBEZIUM
    with pytest.raises(DefinitionError, match=error):
        defined(tmp_path, DEBEZIUM.replace(before, after))


def test_the_newest_row_of_a_key_is_not_looked_for_among_the_first(tmp_path: Path) -> None:
    section = '[deduplicate]\nby = ["id"]\ntime = "placed"\nwithin = "1 m"\n'
    upsert = 'table = "t"\nmode = "upsert"\nkey = ["id"]'
    with pytest.raises(DefinitionError, match="leave one of them out"):
        defined(tmp_path, section + SMALL.replace('table = "orders-table"', upsert))


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        ({"mode": WriteMode.UPSERT}, "key must be a list of columns"),
        ({"key": ("id",)}, "key must be a list of columns"),
        ({"changes": ChangeForm.DEBEZIUM}, "changes must be left out"),
        ({**UPSERT, "changes": ChangeForm.DEBEZIUM}, r"\[parse\] is missing"),
        ({**UPSERT, "deduplication": Deduplication(("id",), "at", 60)}, "leave one of them out"),
    ],
)
def test_what_contradicts_itself_is_refused_in_python_too(
    entries: dict[str, Any], error: str
) -> None:
    with pytest.raises(DefinitionError, match=error):
        PipelineConfig("127.0.0.1:9092", ("orders",), Path("table"), **entries)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"none\.toml can't be read: No such file"):
        load(tmp_path / "none.toml")
