"""Goal: Penstock answers as Apache Pulsar does. Method: the same random steps of a real client of
both, producers, consumers of three kinds of subscription, and readers.

Apache Pulsar comes from Maven Central. A run is told by its number, which makes it again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from apache_pulsar import ApachePulsar
from broker_process import BrokerProcess
from pulsar_twins import Twin, random_step

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
    chance = random.Random(number)
    urls = f"pulsar://{original.address}", shared_server.pulsar
    twins = [Twin(each, f"twins-{number}") for each in urls]
    asked = []
    with ThreadPoolExecutor(2) as threads:
        for place in range(STEPS):
            name, step = random_step(chance)
            expected, answered = threads.map(lambda twin, step=step: twin.do(step), twins)
            asked.append(f"{place} {name}: {expected}")
            assert answered == expected, "\n".join(asked)
    for twin in twins:
        twin.close()
