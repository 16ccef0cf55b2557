"""The error codes, against those of two other implementations."""

from __future__ import annotations

import kafka.errors
import kio.schema.errors

from penstock.kafka.wire import ErrorCode


def test_names_and_numbers_are_those_of_kio() -> None:
    theirs = {each.name.upper(): each.value for each in kio.schema.errors.ErrorCode}
    ours = {each.name: each.value for each in ErrorCode}
    assert {name: ours.get(name) for name in theirs} == theirs
    assert sorted(ours.values()) == list(range(-1, 137))


def test_retriable_codes_are_those_of_kafka_python() -> None:
    differing = {
        code
        for code, error in kafka.errors.kafka_errors.items()
        if code in set(ErrorCode) and bool(error.retriable) != ErrorCode(code).retriable
    }
    # Java's CorruptRecordException is retriable, and the protocol's own table says so.
    assert differing == {ErrorCode.CORRUPT_MESSAGE}


def test_a_code_is_its_number() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == 6
    assert ErrorCode(6).retriable
    assert not ErrorCode.NONE.retriable
