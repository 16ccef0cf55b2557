"""The options of a read that make typed columns of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

SCHEMA: Final = "schema"
KEY_SCHEMA: Final = "keySchema"
SUBJECT: Final = "schemaSubject"
KEY_SUBJECT: Final = "keySchemaSubject"
MESSAGE: Final = "schemaMessage"
KEY_MESSAGE: Final = "keySchemaMessage"
ON_PARSE_ERROR: Final = "onParseError"
DEAD_LETTER: Final = "deadLetter"
NAMES: Final = (
    SCHEMA,
    KEY_SCHEMA,
    SUBJECT,
    KEY_SUBJECT,
    MESSAGE,
    KEY_MESSAGE,
    ON_PARSE_ERROR,
    DEAD_LETTER,
)


SCHEMA_VERSION: Final = "schemaVersion"
"""The column by which rows say with which version of its topic's schema a value was written."""


class OnParseError(StrEnum):
    """What a record that is not of its schema does."""

    FAIL = "fail"
    """It ends the read with an error that names it."""
    NULL = "null"
    """Its typed column is null."""
    DROP = "drop"
    """It is no row."""
    DEAD_LETTER = "deadLetter"
    """It is written to a folder with the reason, and is no row."""


class ValueOptionError(ValueError):
    """An option of typed columns is missing or can't be; the message names it."""


@dataclass(frozen=True)
class ColumnOptions:
    """What one of the columns key and value is made of."""

    option: str
    """The name of the option, for errors."""
    schema: str
    subject: str | None
    """Of the registry; that of the topic unless set."""
    message: str | None
    """Of a Protobuf file that has more than one."""


@dataclass(frozen=True)
class ValueOptions:
    """Which columns are typed, and what happens to records that are not of their schema."""

    value: ColumnOptions | None
    key: ColumnOptions | None
    on_parse_error: OnParseError
    dead_letter: Path | None


def is_schema_file(path: Path) -> bool:
    """Whether what a schema says is the path of a file: columns may be longer than any file's."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def parse_value_options(options: Mapping[str, str]) -> ValueOptions | None:
    """Read the options, whose names are in any case; None where no column is typed.

    Raises ValueOptionError.
    """
    given = {name.lower(): value for name, value in options.items()}
    value = _column(given, SCHEMA, SUBJECT, MESSAGE)
    key = _column(given, KEY_SCHEMA, KEY_SUBJECT, KEY_MESSAGE)
    on_parse_error, folder = _on_parse_error(given)
    if value is None and key is None:
        for name in (ON_PARSE_ERROR, DEAD_LETTER):
            if name.lower() in given:
                raise ValueOptionError(f"{name} is for typed columns: give {SCHEMA} with it")
        return None
    return ValueOptions(value, key, on_parse_error, folder)


def _column(
    given: Mapping[str, str], name: str, subject: str, message: str
) -> ColumnOptions | None:
    schema = given.get(name.lower(), "").strip()
    if name.lower() in given and not schema:
        raise ValueOptionError(
            f"{name} is empty: give columns such as 'id BIGINT, name STRING', the path of a file "
            "of Avro, JSON Schema or Protobuf, or the URL of a registry"
        )
    for other in (subject, message):
        if other.lower() in given and not schema:
            raise ValueOptionError(f"{other} says more about {name}: give {name} with it")
    if not schema:
        return None
    return ColumnOptions(name, schema, given.get(subject.lower()), given.get(message.lower()))


def _on_parse_error(given: Mapping[str, str]) -> tuple[OnParseError, Path | None]:
    word = given.get(ON_PARSE_ERROR.lower())
    folder = given.get(DEAD_LETTER.lower())
    known = {each.lower(): each for each in OnParseError}
    if word is not None and word.strip().lower() not in known:
        raise ValueOptionError(
            f"{ON_PARSE_ERROR} must be one of {', '.join(OnParseError)}, not {word!r}"
        )
    default = OnParseError.FAIL if folder is None else OnParseError.DEAD_LETTER
    chosen = default if word is None else known[word.strip().lower()]
    if chosen is OnParseError.DEAD_LETTER and not folder:
        raise ValueOptionError(
            f"{ON_PARSE_ERROR} is {chosen}: give the folder that such records are written to as "
            f"{DEAD_LETTER}"
        )
    if folder is None:
        return chosen, None
    if chosen is not OnParseError.DEAD_LETTER:
        raise ValueOptionError(
            f"{DEAD_LETTER} is the folder of records that don't parse, and {ON_PARSE_ERROR} is "
            f"{chosen}: leave one of them out"
        )
    if "://" in folder:
        raise ValueOptionError(
            f"{DEAD_LETTER} must be a folder on a file system that driver and workers share, "
            f"not {folder!r}"
        )
    return chosen, Path(folder).absolute()
