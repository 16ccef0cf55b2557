"""The test suites that apache-iggy's Python clients were published with, against a broker of ours.

`make interop-iggy` fetches them; without that the tests are skipped. What does not pass is listed,
each with its reason, and nothing may come to that list.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import iggy_suites
from broker_process import BrokerProcess

PAGE = Path(__file__).parents[2] / "docs" / "interop-iggy.md"

pytestmark = pytest.mark.soak


def known_failures(release: str) -> set[str]:
    """Return the tests that the page says do not pass, as it names them."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {release}")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(test_[^`]+)` \|", section, re.MULTILINE))


def as_on_page(test: str) -> str:
    """`tests/test_a.py::TestB::test_c[d]` is `test_a::TestB::test_c` there."""
    return test.removeprefix("tests/").replace(".py::", "::").partition("[")[0]


@pytest.mark.parametrize("release", iggy_suites.RELEASES)
@pytest.mark.timeout(iggy_suites.RUN_SECONDS)
def test_suite_passes_but_for_what_the_page_says(server: BrokerProcess, release: str) -> None:
    if not iggy_suites.is_at_hand(release):
        pytest.skip("make interop-iggy fetches it")
    outcome = iggy_suites.run(release, server.iggy)
    assert outcome.passed, outcome.output[-4000:]
    assert set(map(as_on_page, outcome.failed)) == known_failures(release), outcome.output[-8000:]
