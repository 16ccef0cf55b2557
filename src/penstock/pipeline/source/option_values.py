"""The values that options have; what is wrong is said together with what is right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

Given: TypeAlias = Mapping[str, str]
"""Options by their names in lower case: Spark does not mind how they are written."""

Word = TypeVar("Word", bound=StrEnum)

_DURATION: Final = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?")
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


class OptionError(ValueError):
    """An option is missing, unknown or has a value that it can't have."""


def refuse_unknown(given: Given, names: Collection[str], also: Collection[str] = ()) -> None:
    """Raise OptionError where an option has none of the names; `also` is known and not offered."""
    known = {name.lower(): name for name in (*names, *also)}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {known[near[0]]}?" if near else "known are " + ", ".join(names)
            raise OptionError(f"unknown option {name!r}: {hint}")


def count(given: Given, name: str) -> int | None:
    """Return a whole number above 0, None where the option is not given. Raises OptionError."""
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise OptionError(f"{name} must be a whole number above 0, not {text!r}")
    return int(text)


def milliseconds(given: Given, name: str) -> int | None:
    """Return a time or a duration in whole ms, None where it is not given. Raises OptionError."""
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal():
        raise OptionError(f"{name} must be milliseconds, a whole number, not {text!r}")
    return int(text)


def flag(given: Given, name: str, *, default: bool) -> bool:
    """Return whether an option is true. Raises OptionError."""
    word = given.get(name.lower(), str(default)).strip().lower()
    if word not in {"true", "false"}:
        raise OptionError(f"{name} must be true or false, not {word!r}")
    return word == "true"


def choice(given: Given, name: str, default: Word) -> Word:
    """Return one of the words of an enumeration, however it is written. Raises OptionError."""
    text = given.get(name.lower(), default).strip()
    for word in type(default):
        if word.lower() == text.lower():
            return word
    raise OptionError(f"{name} must be one of {', '.join(type(default))}, not {text!r}")


def duration(given: Given, name: str, default: str) -> float:
    """Return seconds from a number with a unit, as Spark writes them: 15m. Raises OptionError."""
    text = given.get(name.lower(), default).strip().lower()
    found = _DURATION.fullmatch(text)
    if found is None:
        raise OptionError(f"{name} must be a duration such as 90s, 15m or 1h, not {text!r}")
    return int(found[1]) * _SECONDS[found[2] or "ms"]
