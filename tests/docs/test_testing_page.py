"""Every block of the page on testing is run as it is printed, as a test file of its own."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_runs import run_pytest

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
OPTIONAL = ("faststream",)
"""What need not be installed here."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of all blocks together."""
    folder = tmp_path_factory.mktemp("blocks")
    for number, block in enumerate(BLOCKS):
        if missing(block) is None:
            (folder / f"test_block_{number}.py").write_text(block)
    done = run_pytest(folder)
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
