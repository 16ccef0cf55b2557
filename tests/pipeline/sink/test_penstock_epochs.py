"""Goal: an epoch of Penstock's own is refused in words that say what to do."""

from __future__ import annotations

import pytest

from broker_process import BrokerProcess
from epoch_query import PARTITIONS, EpochQuery, expected
from penstock.pipeline.sink.errors import SinkError
from spark_topics import create


@pytest.fixture
def query(shared_server: BrokerProcess) -> EpochQuery:
    return EpochQuery(shared_server.kafka, create(shared_server.kafka, PARTITIONS))


def test_another_batch_of_that_number_is_refused(query: EpochQuery) -> None:
    meanwhile = query.tasks(0)
    assert query.commit(0, query.tasks(0), "1:these:there") is True
    for outcomes in ([], meanwhile):
        with pytest.raises(SinkError, match=r"batch 0 of .* read other rows than it does now"):
            query.commit(0, outcomes, "1:others:there")
    assert query.commit(0, [], "1:these:there") is False
    assert query.shows(expected(0))


def test_a_run_that_another_one_has_overtaken_is_told_so(query: EpochQuery) -> None:
    behind = query.tasks(0)
    for epoch in (0, 1):
        assert query.commit(epoch, query.tasks(epoch)) is True
    with pytest.raises(SinkError, match=r"batch 1 was: .* or another run of the same query"):
        query.commit(0, behind)
    assert query.shows(expected(0, 1))
