"""Making the folders of new partitions, those of many topics at a time."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from penstock.broker.topics.identity import PartitionIdentity, TopicIdentity

WorkedT = TypeVar("WorkedT")


class NewFolders(NamedTuple):
    """Those of new partitions of one topic, by index, each with what it says of itself.

    A new topic has a folder of its own, even where it has no partition yet.
    """

    topic: TopicIdentity
    partitions: Mapping[int, PartitionIdentity]
    is_new_topic: bool


def make_folders(
    make_directory: Callable[[Path], None], topics_folder: Path, wanted: Sequence[NewFolders]
) -> list[OSError | None]:
    """Make folders, durably on return; return why each topic's could not be made, or None.

    What there is then of a topic that failed is left to the caller. All is written before anything
    is flushed: the first flush then takes most of it along, and the others find little to do.
    """
    unflushed: dict[str, list[Path]] = {}

    def write(new: NewFolders) -> None:
        # Made at the start: where it is gone, so is the whole data folder.
        topics_folder.stat()
        unflushed[new.topic.id] = _write(make_directory, topics_folder / new.topic.id, new)

    def flush(new: NewFolders) -> None:
        for path in unflushed[new.topic.id]:
            _flush(path)

    failures = [failure_of(write, new) for new in wanted]
    failures = [
        failure or failure_of(flush, new) for failure, new in zip(failures, wanted, strict=True)
    ]
    failure_of_all = failure_of(_flush, topics_folder)
    return [failure or failure_of_all for failure in failures]


def _write(make_directory: Callable[[Path], None], folder: Path, new: NewFolders) -> list[Path]:
    """Return what has to be flushed, each folder after what it holds."""
    unflushed: list[Path] = []
    if new.is_new_topic:
        make_directory(folder)
        unflushed.append(new.topic.write_first(folder))
    else:
        new.topic.write(folder)
    for index, identity in new.partitions.items():
        partition_folder = folder / str(index)
        _put_aside(partition_folder)
        make_directory(partition_folder)
        unflushed += [identity.write_first(partition_folder), partition_folder]
    return [*unflushed, folder]


def _put_aside(folder: Path) -> None:
    """Rename what lies in a new partition's place, which never meets old bytes."""
    if folder.is_dir():
        folder.rename(folder.with_name(f"{folder.name}.put-aside-{time.time_ns()}"))


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def failure_of(work: Callable[[WorkedT], None], on: WorkedT) -> OSError | None:
    """Do a work; return why the operating system refused it, if it did."""
    try:
        work(on)
    except OSError as error:
        return error
    return None
