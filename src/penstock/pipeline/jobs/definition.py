"""A pipeline as a file: `penstock pipeline run orders.toml`.

The file and the Python form, `PipelineConfig`, say the same. What is not known or contradicts
itself is refused with the place in the file and what would be right.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, Final

from penstock.pipeline.jobs.access import READING, WRITING, access_of
from penstock.pipeline.jobs.config import (
    BATCH_ROWS,
    Deduplication,
    DefinitionError,
    Expectation,
    Otherwise,
    Parsing,
    PipelineConfig,
    TopicTarget,
    WriteMode,
)
from penstock.pipeline.jobs.sections import Section
from penstock.pipeline.session import LOCAL
from penstock.pipeline.source.options import ReadMode
from penstock.pipeline.tables.interface import ChangeForm, TableFormat
from penstock.pipeline.tables.places import is_remote, state_name
from penstock.pipeline.values.options import OnParseError, is_schema_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ENDING: Final = ".toml"

_WRITTEN_TO_ONCE_OR_MORE: Final = ("iggy:", "iggy+tls:")
_WRITE_TOPIC: Final = ("topic", "server", "state", "access")
_WRITE: Final = (
    "table",
    "format",
    "mode",
    "key",
    "changes",
    "partition_by",
    "checkpoint",
    "catalog",
    *_WRITE_TOPIC,
)


def load(path: Path) -> PipelineConfig:
    """Return what a file defines; relative paths in it are below its folder.

    Raises DefinitionError.
    """
    try:
        entries = tomllib.loads(path.read_text())
    except OSError as error:
        raise DefinitionError(f"{path} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path} is no TOML: {error}") from error
    Section(path, "", entries, ("read", "parse", "expect", "deduplicate", "write", "run"))
    read = _read(path, entries.get("read", {}))
    written = Section(path, "write", entries.get("write", {}), _WRITE)
    parts = {
        **read,
        **(_to_topic(path, written, read) if "topic" in written else _to_table(path, written)),
        **_run(path, entries.get("run", {})),
        "parsing": _parse(path, entries.get("parse", {})),
        "expectations": _expectations(path, entries.get("expect", [])),
        "deduplication": _deduplicate(path, entries.get("deduplicate", {})),
    }
    try:
        return PipelineConfig(**parts)
    except DefinitionError as error:
        raise DefinitionError(f"{path}: {error}") from None


def _read(path: Path, entries: Any) -> dict[str, Any]:
    names = ("server", "topics", "starting_offsets", "read_mode", "headers", "ignore_data_loss")
    read = Section(path, "read", entries, (*names, "access"))
    return {
        "servers": read.text("server"),
        "topics": read.texts("topics", required=True),
        "starting_offsets": read.text("starting_offsets", "earliest"),
        "read_mode": read.word("read_mode", ReadMode, ReadMode.AUTO),
        "include_headers": read.flag("headers"),
        "fail_on_data_loss": not read.flag("ignore_data_loss"),
        "access": access_of(read.section("access", READING), path.parent),
    }


def _parse(path: Path, entries: Any) -> Parsing | None:
    parse = Section(path, "parse", entries, ("schema", "on_error", "dead_letter"))
    if not parse:
        return None
    on_error = parse.word("on_error", OnParseError, OnParseError.FAIL)
    folder = parse.text("dead_letter", "")
    if (on_error is OnParseError.DEAD_LETTER) != bool(folder):
        raise parse.wrong("dead_letter", 'a folder, with on_error = "deadLetter" and only then')
    schema = parse.text("schema")
    if is_schema_file(beside := path.parent / schema):
        schema = str(beside)
    return Parsing(schema, on_error, path.parent / folder if folder else None)


def _expectations(path: Path, entries: Any) -> tuple[Expectation, ...]:
    if not isinstance(entries, list):
        raise DefinitionError(f"{path}: expectations are sections, each begun by [[expect]]")
    found: list[Expectation] = []
    for each in entries:
        section = Section(path, "expect", each, ("name", "that", "otherwise"))
        name = section.text("name")
        if name in {other.name for other in found}:
            raise section.wrong("name", "another one for each expectation")
        otherwise = section.word("otherwise", Otherwise, Otherwise.KEEP)
        found.append(Expectation(name, section.text("that"), otherwise))
    return tuple(found)


def _deduplicate(path: Path, entries: Any) -> Deduplication | None:
    section = Section(path, "deduplicate", entries, ("by", "time", "within"))
    if not section:
        return None
    within = section.seconds("within")
    if within is None:
        raise section.wrong("within", 'a time such as "10 minutes"')
    return Deduplication(section.texts("by", required=True), section.text("time"), within)


def _to_topic(path: Path, write: Section, read: Mapping[str, Any]) -> dict[str, Any]:
    for name in _WRITE:
        if name in write and name not in _WRITE_TOPIC:
            raise write.wrong(name, "left out, for it is about a table and write.topic is given")
    access = access_of(write.section("access", WRITING), path.parent)
    if "server" not in write and "access" not in write:
        access = read["access"]
    topic = TopicTarget(write.text("topic"), write.text("server", read["servers"]), access)
    if topic.servers.startswith(_WRITTEN_TO_ONCE_OR_MORE):
        raise write.wrong(
            "server", "of Kafka's or Pulsar's protocol, where a row can be written once"
        )
    if topic.servers == read["servers"] and topic.topic in read["topics"]:
        raise write.wrong("topic", "another one than those that are read")
    state = write.text("state", f"{topic.topic}-state")
    return {"table": path.parent / state, "target_topic": topic}


def _to_table(path: Path, write: Section) -> dict[str, Any]:
    for name in ("server", "access"):
        if name in write:
            raise write.wrong(name, "left out, for it is about a topic that is written to")
    checkpoint = write.text("checkpoint", "")
    return {
        **_table(path, write),
        "checkpoint": path.parent / checkpoint if checkpoint else None,
        "mode": write.word("mode", WriteMode, WriteMode.APPEND),
        "key": write.texts("key"),
        "changes": write.word("changes", ChangeForm, ChangeForm.ROWS),
        "partition_by": write.texts("partition_by"),
    }


def _table(path: Path, write: Section) -> dict[str, Any]:
    """Return where a table lies, and as what."""
    place = write.text("table")
    kind = write.word("format", TableFormat, TableFormat.PARQUET)
    catalog = write.text("catalog", "")
    if catalog and kind is not TableFormat.ICEBERG:
        raise write.wrong("catalog", 'left out, or given with format = "iceberg"')
    found = {"table_format": kind, "catalog": catalog or None}
    if not is_remote(place):
        if "state" in write:
            raise write.wrong("state", "left out, for a local table has it in its own folder")
        return {"table": path.parent / place, **found}
    if kind is TableFormat.PARQUET:
        raise write.wrong("format", '"delta" or "iceberg" for a table in an object store')
    state = write.text("state", state_name(place))
    return {"table": path.parent / state, "store": place, **found}


def _run(path: Path, entries: Any) -> dict[str, Any]:
    run = Section(path, "run", entries, ("every", "batch_rows", "master"))
    return {
        "interval_seconds": run.seconds("every"),
        "batch_rows": run.count("batch_rows", BATCH_ROWS),
        "master": run.text("master", LOCAL),
    }
