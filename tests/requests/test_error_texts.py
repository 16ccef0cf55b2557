"""Whatever fails below, no client of any protocol reads a path, SQL or Python."""

from __future__ import annotations

import errno
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.errors import StorageError
from penstock.iggy.errors import as_iggy_error
from penstock.kafka.errors import refusal
from penstock.log import errors as log_errors
from penstock.metadata.errors import MetadataError
from penstock.pulsar.errors import refused
from penstock.records.compaction.cleaning import InflatesTooMuchError

SECRET = re.compile(r"/|\.log|SELECT|INSERT|UNIQUE|sqlite|Error\b|Errno|<|Traceback|object at")
PATH = "/var/lib/penstock/topics/0/00000000000000000000.log"

FAILURES: list[Exception] = [
    OSError(errno.ENOSPC, "No space left on device", PATH),
    PermissionError(errno.EACCES, "Permission denied", PATH),
    log_errors.LogError(f"{PATH}: something"),
    log_errors.LogFailedError(f"{PATH}: a write failed: [Errno 28]"),
    log_errors.LogReadError(f"{PATH}: [Errno 5]"),
    log_errors.LogClosedError(f"{PATH} is closed"),
    log_errors.LogMissingError(f"{PATH} is missing"),
    log_errors.LogNotOpenError(f"{PATH} can't be opened"),
    log_errors.LogWriteError.of(OSError(errno.ENOSPC, "No space left on device", PATH)),
    log_errors.InvalidBatchError("a batch of 5 bytes states 6"),
    log_errors.OffsetOutOfRangeError(5, 0, 3),
    log_errors.CorruptBatchError(5, 7, PATH, 100),
    InflatesTooMuchError("5 bytes inflate to more than 64 times as much"),
    MetadataError("topics were not written; the broker's log says why"),
    StorageError("there is no place for it; the broker's log says why"),
]
BUGS: list[Exception] = [
    sqlite3.IntegrityError("UNIQUE constraint failed: topics.kafka_name"),
    KeyError(f"<object at 0x7f> {PATH}"),
    RuntimeError("SELECT * FROM topics"),
]


def subclasses(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


def test_every_error_of_a_log_is_among_those_tried() -> None:
    assert subclasses(log_errors.LogError) == {
        type(each) for each in FAILURES if isinstance(each, log_errors.LogError)
    }


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_failure_has_a_code_and_clean_words_in_every_protocol(error: Exception) -> None:
    kafka = refusal(error)
    pulsar = refused(error)
    iggy = as_iggy_error(error)
    assert pulsar is not None
    assert iggy is not None  # Iggy's wire carries the number alone.
    assert kafka.message != "a bug in the broker; its log says more"
    for text in (kafka.message, pulsar.text, str(iggy).partition(": ")[2]):
        assert text
        assert not SECRET.search(text)


@pytest.mark.parametrize("error", BUGS, ids=lambda error: type(error).__name__)
def test_a_bug_is_answered_without_a_word_of_it(error: Exception) -> None:
    message = refusal(error).message
    assert message
    assert not SECRET.search(message)
    # These two protocols have no answer for it: the connection is closed.
    assert refused(error) is None
    assert as_iggy_error(error) is None


def test_what_the_operating_system_said_is_in_the_log(caplog: Any) -> None:
    refusal(FAILURES[0])
    assert PATH in caplog.text


def test_the_words_that_are_looked_for_would_be_found() -> None:
    for error in (*FAILURES[:8], *BUGS):
        assert SECRET.search(str(error))
    assert SECRET.search(str(Path("/a")))
