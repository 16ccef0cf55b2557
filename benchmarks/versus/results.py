"""Result files: one JSON object with what was measured and what it depends on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

DIGITS: Final = 5
"""Digits that are kept: more than the noise leaves, few enough for a file that can be committed."""


def save(path: Path, result: dict[str, Any]) -> None:
    """Write a result with one run a line, so that two of them can be compared by a diff.

    The fields are named once, and a run is a list of what it has of each.
    """
    head = {key: value for key, value in result.items() if key != "runs"}
    head["fields"] = list(dict.fromkeys(field for run in result["runs"] for field in run))
    rows = ([rounded(run.get(field)) for field in head["fields"]] for run in result["runs"])
    runs = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    text = json.dumps(head, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{text[:-2]},\n "runs": [\n{runs}\n]}}\n', encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    """Read a result as it was given to `save`, but for fields without a value."""
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    fields = result.pop("fields")
    result["runs"] = [
        {field: value for field, value in zip(fields, row, strict=True) if value is not None}
        for row in result["runs"]
    ]
    return result


def continued(earlier: dict[str, Any], later: dict[str, Any], loads: list[str]) -> dict[str, Any]:
    """Return an earlier result that is to get these loads from a later run, and says so.

    What it had of them is left out. Raises ValueError where the scale is another.
    """
    if earlier["scale"] != later["scale"]:
        raise ValueError(f"its scale is {earlier['scale']}, and this one's {later['scale']}")
    added = {name: later[name] for name in ("started", "commit", "machine")} | {"loads": loads}
    before = [
        each | {"loads": [name for name in each["loads"] if name not in loads]}
        for each in earlier.get("added", [])
    ]
    return earlier | {
        "added": [*(each for each in before if each["loads"]), added],
        "runs": [run for run in earlier["runs"] if run["load"] not in loads],
    }


def rounded(value: Any) -> Any:
    """The same with fewer digits in each number with a fraction."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return value
