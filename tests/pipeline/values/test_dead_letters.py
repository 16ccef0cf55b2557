"""The folder of dead letters: each record once, whatever ends a task and however it was cut."""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.pipeline.values.dead_letters import COLUMNS, DeadLetters, prepare_folder
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.origin import Origin

QUERY = "0b5e8b32"


def letters(first: int, last: int) -> pa.RecordBatch:
    rows = [{"topic": "orders", "offset": n, "reason": "bad"} for n in range(first, last)]
    return pa.RecordBatch.from_pylist(rows, COLUMNS)


def write(folder: Path, start: int, end: int, *, query: str = QUERY, batch: int = 3) -> None:
    with DeadLetters(folder, Origin(query, batch, "orders", 0, start, end)) as dead:
        dead.add(letters(start, (start + end) // 2))
        dead.add(letters((start + end) // 2, end))


def offsets(folder: Path) -> list[int]:
    return sorted(pq.read_table(folder)["offset"].to_pylist())


def test_an_attempt_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    for _ in range(3):
        write(tmp_path, 0, 10)
    assert offsets(tmp_path) == list(range(10))


def test_an_attempt_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with suppress(RuntimeError), DeadLetters(tmp_path, Origin(QUERY, 3, "orders", 0, 0, 9)) as dead:
        dead.add(letters(0, 5))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_an_attempt_that_is_killed_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    killed = DeadLetters(tmp_path, Origin(QUERY, 3, "orders", 0, 0, 10))
    killed.add(letters(0, 5))
    assert pq.read_table(tmp_path).num_rows == 0 if list(tmp_path.glob("*.parquet")) else True
    write(tmp_path, 0, 10)
    assert offsets(tmp_path) == list(range(10))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_batch_that_is_cut_otherwise_is_there_once(tmp_path: Path) -> None:
    write(tmp_path, 0, 100)
    write(tmp_path, 0, 50)
    write(tmp_path, 50, 100)
    assert offsets(tmp_path) == list(range(100))
    write(tmp_path, 0, 100)
    assert offsets(tmp_path) == list(range(100))


def test_a_task_without_bad_records_takes_back_what_another_cut_had(tmp_path: Path) -> None:
    write(tmp_path, 0, 100)
    with DeadLetters(tmp_path, Origin(QUERY, 3, "orders", 0, 0, 100)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_other_batches_queries_and_topics_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, 0, 10)
    write(tmp_path, 10, 20, batch=4)
    write(tmp_path, 0, 10, query="another")
    with DeadLetters(tmp_path, Origin(QUERY, 3, "orders-00000", 0, 0, 10)) as dead:
        dead.add(letters(0, 10))
    with DeadLetters(tmp_path, Origin(QUERY, 3, "orders", 1, 0, 10)) as dead:
        dead.add(letters(0, 10))
    assert len(offsets(tmp_path)) == 50


@pytest.mark.parametrize(
    "topic", ["t" * 249, "persistent://public/default/" + "t" * 200, "stream/t"]
)
@pytest.mark.parametrize("query", ["", str(uuid.UUID(int=1))])
def test_whatever_a_topic_is_called(tmp_path: Path, topic: str, query: str) -> None:
    for _ in range(2):
        for of in (topic, f"{topic[:-1]}u"):
            with DeadLetters(tmp_path, Origin(query, 3, of, 0, 0, 10)) as dead:
                dead.add(letters(0, 10))
    assert offsets(tmp_path) == sorted([*range(10)] * 2)


def test_what_is_read_again_is_written_again_under_its_name(tmp_path: Path) -> None:
    for _ in range(2):
        write(tmp_path, 0, 10, query="")
    write(tmp_path, 10, 20, query="")
    assert offsets(tmp_path) == list(range(20))


def test_a_folder_that_can_not_be_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SchemaError, match=r"deadLetter: the folder .*/file/dead can't be made"):
        prepare_folder(tmp_path / "file" / "dead")
