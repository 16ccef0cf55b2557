"""Every block of the page on testing is run as it is printed, as a test file of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

import penstock

SOURCE = Path(penstock.__file__).resolve().parents[1]
PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
OPTIONAL = ("faststream",)
"""What need not be installed here."""
PLUGIN = () if entry_points(group="pytest11", name="penstock") else ("-p", "penstock.pytest_plugin")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of all blocks together."""
    folder = tmp_path_factory.mktemp("blocks")
    for number, block in enumerate(BLOCKS):
        if missing(block) is None:
            (folder / f"test_block_{number}.py").write_text(block)
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *PLUGIN]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_does_what_it_says(number: int, outcomes: str) -> None:
    package = missing(BLOCKS[number])
    if package is not None:
        pytest.skip(f"{package} is not installed")
    found = re.findall(rf"^(\w+) test_block_{number}\.py::", outcomes, re.MULTILINE)
    assert found, outcomes
    assert set(found) == {"PASSED"}, outcomes


def missing(block: str) -> str | None:
    return next((each for each in OPTIONAL if each in block and find_spec(each) is None), None)
