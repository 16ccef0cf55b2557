"""Goal: Penstock answers as Iggy's own server does. Method: the same random requests to a real one:
topics, partitions, messages, polls of every strategy, offsets, and a group of one member.

No registry has that server: `IGGY_SERVER` names one that was built. A run is told by its number,
which makes it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from apache_iggy_server import ApacheIggyServer
from broker_process import BrokerProcess
from iggy_twin_steps import TOPICS, WEIGHTS
from iggy_twins import ClientOfToday, Twin
from side_by_side import ask_alike

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

RUNS, STEPS = 30, 150


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheIggyServer]:
    with ApacheIggyServer(tmp_path_factory.mktemp("iggy")) as server:
        yield server


@pytest.mark.parametrize("number", range(RUNS))
def test_both_answer_alike(
    original: ApacheIggyServer, shared_server: BrokerProcess, number: int
) -> None:
    addresses = (original.iggy, shared_server.iggy)
    twins = [Twin(partial(ClientOfToday, each), f"twins-{number}") for each in addresses]
    for twin in twins:
        twin.make_stream(twin.stream, TOPICS)
    ask_alike(twins, WEIGHTS, number, STEPS)
    for twin in twins:
        twin.close()
