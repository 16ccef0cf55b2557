"""Sections of a definition's file, read with the place of each error."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.pipeline.jobs.config import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_Words = TypeVar("_Words", bound=StrEnum)

_SECONDS: Final = {"": 1, "s": 1, "second": 1, "m": 60, "minute": 60, "h": 3600, "hour": 3600}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*?)s?")


class Section:
    """One section. All methods raise DefinitionError."""

    def __init__(self, file: Path, name: str, entries: Any, known: Sequence[str]) -> None:
        self._file = file
        self._name = name
        if not isinstance(entries, Mapping):
            raise DefinitionError(f"{file}: {name} must be a section, begun by [{name}]")
        self._entries = entries
        for key in entries:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                raise DefinitionError(f"{file}: nothing is called {self._place(key)}: {hint}")

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; without a default it has to be there."""
        value = self._entries.get(key, default)
        if not isinstance(value, str) or not (value or default == ""):
            raise self.wrong(key, "a text")
        return value

    def texts(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        """Return a list of texts, each once."""
        value = self._entries.get(key, [])
        texts = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
        if not texts or (required and not value):
            raise self.wrong(key, 'a list of texts, such as ["orders"]')
        return tuple(dict.fromkeys(value))

    def flag(self, key: str) -> bool:
        """Return whether something is so; it is not unless said."""
        value = self._entries.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def count(self, key: str, default: int) -> int:
        value = self._entries.get(key, default)
        if type(value) is not int or value < 1:
            raise self.wrong(key, "a whole number above 0")
        return value

    def word(self, key: str, words: type[_Words], default: _Words) -> _Words:
        """Return one of some words."""
        value = self._entries.get(key, default.value)
        if value not in list(words):
            raise self.wrong(key, f"one of {', '.join(words)}")
        return words(value)

    def seconds(self, key: str) -> float | None:
        """Return a time in seconds; None where none is given."""
        value = self._entries.get(key)
        if value is None:
            return None
        found = _DURATION.fullmatch(str(value).strip().lower())
        if not found or found[2] not in _SECONDS or not float(found[1]):
            raise self.wrong(key, 'a time such as "10 seconds" or "5 m"')
        return float(found[1]) * _SECONDS[found[2]]

    def section(self, key: str, known: Sequence[str]) -> Section:
        """Return a section within this one; an empty one where it is not given."""
        return Section(self._file, self._place(key), self._entries.get(key, {}), known)

    def wrong(self, key: str, right: str) -> DefinitionError:
        """Return the error that a value is not what it has to be."""
        value = self._entries.get(key)
        got = "it is missing" if value is None else f"it is {value!r}"
        return DefinitionError(f"{self._file}: {self._place(key)} must be {right}; {got}")

    def _place(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key
