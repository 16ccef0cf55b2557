"""The tests that franz-go was published with, against a broker of ours.

`make interop-franz` fetches them; without that the tests are skipped. What does not pass is on the
page, each with its reason, and nothing may come to that.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import franz_suite
from broker_process import BrokerProcess

PAGE = Path(__file__).parents[2] / "docs" / "interop-kafka.md"

EVENTS = """\
{"Action":"start","Package":"kgo"}
{"Action":"run","Package":"kgo","Test":"TestA"}
{"Action":"output","Package":"kgo","Test":"TestA/b","Output":"it went wrong\\n"}
{"Action":"fail","Package":"kgo","Test":"TestA/b","Elapsed":1}
{"Action":"fail","Package":"kgo","Test":"TestA","Elapsed":1}
{"Action":"pass","Package":"kgo","Test":"TestC","Elapsed":0}
{"Action":"skip","Package":"kgo","Test":"TestD","Elapsed":0}
{"Action":"fail","Package":"kgo","Elapsed":1}
"""


@pytest.fixture
def at_hand() -> None:
    if not franz_suite.is_at_hand():
        pytest.skip("make interop-franz fetches it")


def known_failures() -> set[str]:
    section = PAGE.read_text(encoding="utf-8").partition("## franz-go")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(Test[^`]+)` \|", section, re.MULTILINE))


def test_what_became_of_each_is_read() -> None:
    expected = franz_suite.Outcome({"TestC"}, {"TestA", "TestA/b"}, "it went wrong\n")
    assert franz_suite.read(EVENTS) == expected


@pytest.mark.soak
@pytest.mark.timeout(2 * franz_suite.RUN_SECONDS)
def test_suite_passes_but_for_what_the_page_says(at_hand: None, server: BrokerProcess) -> None:
    outcome = franz_suite.run(server.kafka)
    assert {"TestGroupETL", "TestTxnEtl"} <= outcome.passed, outcome.output[-4000:]
    assert outcome.failed == known_failures(), outcome.output[-8000:]


@pytest.mark.soak
@pytest.mark.timeout(2 * franz_suite.RUN_SECONDS)
def test_chains_of_groups_get_each_record_once_where_connections_die(
    at_hand: None, server: BrokerProcess
) -> None:
    """The suite does it: each connection lives for a second."""
    outcome = franz_suite.run(server.kafka, "TestGroupETL", breaks_connections=True)
    assert "TestGroupETL" in outcome.passed, outcome.output[-8000:]
    assert not outcome.failed
