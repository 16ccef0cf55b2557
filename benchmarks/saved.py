"""A result that later ones are compared with: `make bench FLAGS=--save` keeps it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

FOLDER = Path(__file__).with_name("results")


def add_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--save", action="store_true", help="keep this result for later ones to be compared with"
    )


def compare(name: str, numbers: dict[str, float], *, save: bool) -> None:
    """Print each number beside the one that was saved, and save them when that is wanted."""
    path = FOLDER / f"bench-{name}.json"
    if path.exists():
        print(f"\n{'compared with the saved result':38}{'saved':>10}{'now':>10}{'now/saved':>11}")
        print("\n".join(lines(json.loads(path.read_text()), numbers)))
    if save:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(numbers, indent=1) + "\n")
        print(f"\nsaved in {path}")


def lines(saved: dict[str, float], numbers: dict[str, float]) -> list[str]:
    """One line a number. What was not saved, or was nothing, has no ratio."""
    return [
        f"{name:38}{saved[name]:10.3g}{number:10.3g}{number / saved[name]:11.2f}"
        if saved.get(name)
        else f"{name:38}{'-':>10}{number:10.3g}{'-':>11}"
        for name, number in numbers.items()
    ]
