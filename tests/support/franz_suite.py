"""The tests that franz-go, a client in Go, was published with.

`python -m franz_suite` fetches them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

CACHE: Final = Path(os.environ.get("FRANZ_SUITE", "build/franz-go")).absolute()
PACKAGE: Final = "github.com/twmb/franz-go/pkg/kgo"
RELEASE: Final = "v1.22.2"
RUN_SECONDS: Final = 900
_RECORDS: Final = 50_000
"""What each of its chains of groups carries; it would be half a million."""


class Outcome(NamedTuple):
    """The tests by what became of them. Where a part of one fails, that is named, and it too."""

    passed: set[str]
    failed: set[str]
    output: str


def is_at_hand() -> bool:
    """Whether `prepare` has done its work."""
    return shutil.which("go") is not None and (CACHE / "compiled").exists()


def prepare() -> None:
    """Fetch the package and what its tests need, and compile them."""
    if is_at_hand():
        return
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)
    for words in (
        ["mod", "init", "suite"],
        ["get", "-t", f"{PACKAGE}@{RELEASE}"],
        ["test", "-run", "^$", PACKAGE],
    ):
        subprocess.run(["go", *words], cwd=CACHE, check=True)
    (CACHE / "compiled").touch()


def run(address: str, only: str = ".", *, breaks_connections: bool = False) -> Outcome:
    """Run the tests whose names have `only`, a regular expression, against a broker."""
    environment = {
        "KGO_SEEDS": address,
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": str(_RECORDS),
        "KGO_TEST_CHAOS": str(int(breaks_connections)),
        "KGO_LOG_LEVEL": "none",
    }
    ended = subprocess.run(
        ["go", "test", "-json", "-count=1", f"-timeout={RUN_SECONDS}s", "-run", only, PACKAGE],
        cwd=CACHE,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return read(ended.stdout)


def read(events: str) -> Outcome:
    """Return what `go test -json` says became of each test."""
    named: dict[str, set[str]] = {"pass": set(), "fail": set()}
    output = []
    for event in map(json.loads, events.splitlines()):
        output.append(event.get("Output", ""))
        if "Test" in event and event["Action"] in named:
            named[event["Action"]].add(event["Test"])
    return Outcome(named["pass"], named["fail"], "".join(output))


if __name__ == "__main__":
    prepare()
