"""Goal: Penstock answers as Iggy's own servers do. Method: the same random requests to a real one:
topics, partitions, messages, polls of every strategy, offsets, look-ups that can't be read, and the
members of a group.

No registry has those servers: `IGGY_SERVER` names one of today that was built, `IGGY_SERVER_0_8`
one of 0.8. A run is told by its number, which makes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import pytest

import iggy_member_steps
import iggy_twin_steps
import older_iggy_twin_steps
from apache_iggy_server import OF_0_8, OF_TODAY, ApacheIggyServer
from broker_process import BrokerProcess
from iggy_member_steps import Members
from iggy_twins import Client, ClientOfToday, Twin
from older_iggy_twins import ClientOf08
from side_by_side import Weights, ask_alike

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

RUNS, STEPS = 30, 150
MEMBER_STEPS = 60


class Dialect(NamedTuple):
    """Its server, its client, and what that asks."""

    name: str
    server: str
    client: Callable[[str], Client]
    weights: Weights[Twin]


DIALECTS = [
    Dialect("today", OF_TODAY, ClientOfToday, iggy_twin_steps.WEIGHTS),
    Dialect("0_8", OF_0_8, ClientOf08, older_iggy_twin_steps.WEIGHTS),
]


@pytest.fixture(scope="module", params=DIALECTS, ids=lambda each: each.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    assert isinstance(request.param, Dialect)
    return request.param


@pytest.fixture(scope="module")
def original(
    dialect: Dialect, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheIggyServer]:
    with ApacheIggyServer(dialect.server, tmp_path_factory.mktemp("iggy")) as server:
        yield server


@pytest.fixture
def clients(
    dialect: Dialect, original: ApacheIggyServer, shared_server: BrokerProcess
) -> list[Callable[[], Client]]:
    """What connects to the original, and what to Penstock."""
    return [partial(dialect.client, each.iggy) for each in (original, shared_server)]


@pytest.mark.parametrize("number", range(RUNS))
def test_both_answer_alike(
    dialect: Dialect, clients: list[Callable[[], Client]], number: int
) -> None:
    twins = [Twin(connected, f"twins-{dialect.name}-{number}") for connected in clients]
    for twin in twins:
        twin.make_stream(twin.stream, iggy_twin_steps.TOPICS)
    ask_alike(twins, dialect.weights, number, STEPS)
    for twin in twins:
        twin.close()


@pytest.mark.parametrize("number", range(RUNS))
def test_members_of_a_group_get_the_same(clients: list[Callable[[], Client]], number: int) -> None:
    twins = [Members(connected, f"members-{dialect.name}-{number}") for connected in clients]
    ask_alike(twins, iggy_member_steps.WEIGHTS, number, MEMBER_STEPS)
    for twin in twins:
        twin.close()
