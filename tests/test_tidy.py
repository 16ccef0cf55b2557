"""What no reader should find in the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE_BYTES_MAX = 256 * 1024
FOREIGN_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|work)/\w")
LEFTOVER = re.compile(r"\b(?:" + "|".join(["FIX" + "ME", "TO" + "DO", "XX" + "X"]) + r")\b")
TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".hex",
    ".sql",
    ".txt",
    ".proto",
    ".java",
    ".js",
    ".json",
    ".properties",
    ".pyi",
    ".rs",
    ".schema",
    ".sh",
}
DEADLINE = re.compile(
    r"(?:asyncio\.timeout|\.join|\.flush|\.result)\((?:timeout=)?(\d[\d.]*)\)"
    r"|\bwait_for\(.*, (?:timeout=)?(\d[\d.]*)\)"
)
OTHER_NAMES = {"Makefile", "LICENSE", ".gitignore", "py.typed", "run"}
PICTURE = ".svg"
GENERATED = ("_pb2.py", "_pb2.pyi")


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("this is no git checkout")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def written_files() -> list[Path]:
    return [path for path in tracked_files() if not path.name.endswith((*GENERATED, PICTURE))]


def found(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in written_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_nothing_is_left_for_later() -> None:
    assert not found(LEFTOVER)


def test_no_path_of_one_machine_is_named() -> None:
    assert not found(FOREIGN_PATH)


def test_files_are_of_known_kinds_and_small() -> None:
    for path in tracked_files():
        known = path.suffix in {*TEXT_SUFFIXES, PICTURE} or path.name in OTHER_NAMES
        assert known, f"{path.relative_to(ROOT)}: add its kind to the test if it belongs here"
        assert path.stat().st_size <= FILE_BYTES_MAX, f"{path.relative_to(ROOT)} is too big"


def test_what_tests_wait_for_has_its_time() -> None:
    """A deadline is to pass, and so a second at most, or far away: see `patience.py`."""
    for path in (ROOT / "tests").rglob("*.py"):
        for found in DEADLINE.finditer(path.read_text(encoding="utf-8")):
            seconds = float(found[1] or found[2])
            assert not 1 < seconds < 30, f"{path.relative_to(ROOT)}: {found[0]}"


def test_text_ends_lines_cleanly() -> None:
    for path in written_files():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"[ \t]+$", text, re.MULTILINE), f"{path}: spaces at a line's end"
        assert not text or text.endswith("\n"), f"{path}: the last line does not end"


def test_each_page_has_one_title_at_its_top() -> None:
    for path in written_files():
        if path.suffix != ".md":
            continue
        outside_code = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        titles = [line for line in outside_code.splitlines() if line.startswith("# ")]
        assert len(titles) == 1, f"{path}: {len(titles)} titles"
        assert path.read_text().startswith("# "), f"{path}: the title is not at the top"


def test_tasks_are_started_by_the_one_helper() -> None:
    # A bare task may be collected while it runs, and hides its failure.
    starters = re.compile(r"\b(?:create_task|ensure_future)\(")
    places = [place for place in found(starters) if place.startswith("src/")]
    assert [place.partition(":")[0] for place in places] == ["src/penstock/tasks.py"], places


def test_every_logger_is_called_logger() -> None:
    makers = re.compile(r"\bgetLogger\(")
    places = [place for place in found(makers) if place.startswith("src/")]
    assert [
        place for place in places if ": logger = logging.getLogger(__name__)" not in place
    ] == []
