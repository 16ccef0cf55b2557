"""Result files: one JSON object with what was measured and what it depends on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

DIGITS: Final = 5
"""Digits that are kept: more than the noise leaves, few enough for a file that can be committed."""


def save(path: Path, result: dict[str, Any]) -> None:
    """Write a result with one run a line, so that two of them can be compared by a diff."""
    head = {key: value for key, value in result.items() if key != "runs"}
    runs = ",\n".join(json.dumps(rounded(run)) for run in result["runs"])
    text = json.dumps(head, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{text[:-2]},\n "runs": [\n{runs}\n]}}\n', encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def rounded(value: Any) -> Any:
    """The same with fewer digits in each number with a fraction."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return value
