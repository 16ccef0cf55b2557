"""Goal: Penstock answers as Apache Pulsar does. Method: the same random steps of a real client of
both, producers, consumers of three kinds of subscription, and readers.

Apache Pulsar comes from Maven Central. A run is told by its number, which makes it again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apache_pulsar import ApachePulsar
from broker_process import BrokerProcess
from pulsar_twins import WEIGHTS, Twin
from side_by_side import ask_alike

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

RUNS, STEPS = 20, 60


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApachePulsar]:
    with ApachePulsar(tmp_path_factory.mktemp("pulsar"), transactions=False) as broker:
        yield broker


@pytest.mark.parametrize("number", range(RUNS))
def test_both_answer_alike(
    original: ApachePulsar, shared_server: BrokerProcess, number: int
) -> None:
    urls = f"pulsar://{original.address}", shared_server.pulsar
    twins = [Twin(each, f"twins-{number}") for each in urls]
    ask_alike(twins, WEIGHTS, number, STEPS)
    for twin in twins:
        twin.close()
