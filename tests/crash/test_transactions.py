"""Goal: a transaction is whole or absent for readers of every protocol, its offsets with it,
however often the broker dies in the middle of it.

Method: three real producers of Kafka and one of Pulsar commit and abort transactions of random
messages over random partitions and go on while the broker is killed again and again; a consumer
follows what is committed. Then the topic is read through each protocol, and what all saw is checked
as one history.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faulty_broker import FaultyBroker
from histories import parse
from transaction_histories import Kind, TransactionHistory, find_anomalies
from transaction_run import TransactionRun

COMMITS_MIN = 3
"""Transactions that each writer commits between two deaths."""


@pytest.mark.timeout(300)
def test_transactions_survive_ten_deaths(server: BrokerProcess) -> None:
    die(server, rounds=10, seed=1998)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_transactions_survive_two_hundred_deaths(server: BrokerProcess) -> None:
    die(server, rounds=200, seed=time.time_ns())


def die(server: BrokerProcess, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    run = TransactionRun(server)
    with run.clients():
        for _ in range(rounds):
            run.wait_for_commits(COMMITS_MIN)
            time.sleep(chance.uniform(0, 0.05))
            server.kill9()
            server.start()
        run.wait_for_commits(COMMITS_MIN)
        run.stop_writers()
        assert find_anomalies(run.history()) == set(), f"seed {seed}"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_transactions_survive_power_cuts(tmp_path: Path) -> None:
    seed = time.time_ns()
    chance = random.Random(seed)
    broker = FaultyBroker(tmp_path)
    broker.start()
    try:
        run = TransactionRun(broker)
        with run.clients():
            for _ in range(20):
                run.wait_for_commits(COMMITS_MIN)
                broker.power_cut(chance)
                broker.start()
            run.wait_for_commits(COMMITS_MIN)
            run.stop_writers()
            assert find_anomalies(run.history()) == set(), f"seed {seed}"
    finally:
        broker.end()


CAUGHT = {
    "ends_forget_a_partition": {Kind.TORN, Kind.LOST},
    "aborts_commit": {Kind.DIRTY},
    "offsets_do_not_wait": {Kind.OFFSET},
    "acknowledgements_do_not_wait": {Kind.ACKNOWLEDGED},
}
"""What is found of each bug: any of these."""


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", CAUGHT)
def test_each_bug_is_caught(tmp_path: Path, bug: str) -> None:
    broker = FaultyBroker(tmp_path, bug=bug)
    broker.start()
    try:
        run = TransactionRun(broker)
        with run.clients():
            run.wait_for_commits(30)
            run.stop_writers()
            broker.kill9()
            broker.start()
            found = {kind for kind, _ in find_anomalies(run.history())}
    finally:
        broker.end()
    assert found & CAUGHT[bug], f"found were {found}"


WRITTEN = """\
invoked - - w/1/0
invoked - - w/1/1
committing - - w/1
committed - - w/1
invoked - - w/2/0
aborted - - w/2
invoked - - w/3/0
invoked - - w/3/1
committing - - w/3
"""
FIRST = "read 0 0 w/1/0\nread 1 0 w/1/1\n"
THIRD = "read 0 3 w/3/0\nread 0 4 w/3/1\n"


def history(
    truth: str, offset: int, followed: str = "", left: set[int] | None = None, **others: str
) -> TransactionHistory:
    truths = {"kafka": truth, "iggy": truth, **others}
    return TransactionHistory(
        writers={"w": parse(WRITTEN)},
        followers={"f": parse(followed)},
        truths={name: parse(text) for name, text in truths.items()},
        offsets={"w": offset},
        left={} if left is None else {"w": left},
    )


@pytest.mark.parametrize(
    ("truth", "offset", "left"), [(FIRST, 1, {0, 2, 3}), (FIRST + THIRD, 3, {0, 2})]
)
def test_what_a_correct_broker_may_do_is_no_anomaly(
    truth: str, offset: int, left: set[int]
) -> None:
    assert find_anomalies(history(truth, offset, FIRST)) == set()
    assert find_anomalies(history(truth, 0, FIRST, left)) == set()


WRONG = {
    "torn": (history(FIRST + "read 0 3 w/3/0\n", 3), Kind.TORN),
    "lost": (history(THIRD, 3), Kind.LOST),
    "aborted and there": (history(FIRST + "read 0 2 w/2/0\n", 2), Kind.DIRTY),
    "read and gone": (history(FIRST, 1, THIRD), Kind.DIRTY),
    "twice": (history(FIRST + "read 0 9 w/1/0\n", 1), Kind.DOUBLED),
    "read twice": (history(FIRST, 1, FIRST + FIRST), Kind.DOUBLED),
    "from nowhere": (history(FIRST + "read 0 9 x/1/0\n", 1), Kind.INVENTED),
    "an offset of nothing": (history(FIRST, 3), Kind.OFFSET),
    "no offset": (history(FIRST, 0), Kind.OFFSET),
    "acknowledged and absent": (history(FIRST, 0, left={3}), Kind.ACKNOWLEDGED),
    "there and not acknowledged": (history(FIRST, 0, left={1, 2, 3}), Kind.ACKNOWLEDGED),
    "two truths": (history(FIRST, 1, pulsar=FIRST + THIRD), Kind.DISAGREED),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_is_found(name: str) -> None:
    found, kind = WRONG[name]
    assert kind in {each for each, _ in find_anomalies(found)}


def test_every_kind_has_a_history() -> None:
    assert {kind for _, kind in WRONG.values()} == {*Kind}
