"""The logs of a node inside its data folder."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from penstock.broker.errors import StorageError
from penstock.broker.topics.folders import failure_of, make_folders
from penstock.broker.topics.identity import IdentityError, is_of_partition
from penstock.log import Flusher, LocalLog, LogMissingError, RealFileSystem, summarise
from penstock.log.ages import oldest_segment
from penstock.log.layout import (
    DELETED_SUFFIX,
    IDENTITY_FILE,
    partition_directory,
    topic_directory,
    topics_directory,
)
from penstock.log.summary import closed_log
from penstock.slow_steps import waiting_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from penstock.broker.topics.folders import NewFolders
    from penstock.broker.topics.identity import PartitionIdentity, TopicIdentity
    from penstock.log import Log, LogConfig, LogSummary
    from penstock.log.files import FileSystem
    from penstock.log.interface import ClosedLog, OldestSegment
    from penstock.metadata.topics import DeletedPartition

ResultT = TypeVar("ResultT")

_THREADS: Final = 4

logger = logging.getLogger(__name__)


class Storage:
    """Makes, opens and removes logs, off the event loop; knows nothing of what is in them.

    `leader_epoch` is what new batches are stamped with (KIP-101). Batches that were stamped with a
    higher one count as damaged, so it never falls from one start to the next.
    """

    def __init__(self, data_folder: Path, leader_epoch: int) -> None:
        self.data_folder = data_folder.absolute()
        self.leader_epoch = leader_epoch
        self._topics_folder = made_folder(topics_directory(self.data_folder))
        self._files = RealFileSystem()
        self.flusher = Flusher()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="logs")
        # One of its own: what takes long keeps nobody from opening a log.
        self._removing = ThreadPoolExecutor(1, thread_name_prefix="removal")

    async def make_folders(self, wanted: Sequence[NewFolders]) -> list[StorageError | None]:
        """Make the folders of new partitions, durably: of each topic all of them, or none.

        Returns why those of a topic could not be made, or None.
        """
        return await self._run(partial(self._make_folders, wanted))

    def new_log(self, topic_id: UUID, index: int, config: LogConfig) -> Log:
        """Open the log of a partition whose folder was made just now."""
        return LocalLog.new(
            partition_directory(self.data_folder, topic_id, index),
            *(config, self._files, self.flusher, self.leader_epoch),
        )

    async def open_log(
        self, identity: PartitionIdentity, config: LogConfig, leader_epoch: int
    ) -> Log:
        """Open a log that was made, recovering it where need be.

        Raises LogMissingError where it is not there or is another one, and OSError.
        """
        with waiting_for("opening the log of %s-%d", identity.topic, identity.index):
            return await self._run(partial(self._open_log, identity, config, leader_epoch))

    async def summaries(self, partitions: Sequence[tuple[UUID, int]]) -> list[LogSummary | None]:
        """Return what closed logs hold, by their topics' ids and their indexes.

        None where one can't be read.
        """
        return await self._run(partial(self._look_at, partitions, summarise))

    async def oldest_segments(
        self, partitions: Sequence[tuple[UUID, int]]
    ) -> list[OldestSegment | None]:
        """Return how old closed logs are, by their topics' ids and their indexes.

        None where one can't be looked at.
        """
        return await self._run(partial(self._look_at, partitions, oldest_segment))

    async def closed_logs(self, partitions: Sequence[tuple[UUID, int]]) -> list[ClosedLog | None]:
        """Return what the folders of closed logs say, by their topics' ids and their indexes.

        None where one can't be looked at.
        """
        return await self._run(partial(self._look_at, partitions, closed_log))

    async def rewrite(self, topics: Collection[TopicIdentity]) -> None:
        """Have the folders of topics that were changed say so.

        What fails is reported only: the catalogue has the change, and a folder goes by its id.
        """
        await self._run(partial(self._rewrite, topics))

    def identify(self, topics: Iterable[tuple[TopicIdentity, Iterable[PartitionIdentity]]]) -> None:
        """Have folders that were made before there were identities say what they are; blocks."""
        for topic, partitions in topics:
            folder = topic_directory(self.data_folder, UUID(topic.id))
            for partition in partitions:
                _write_missing(partition, folder / str(partition.index))
            _write_missing(topic, folder)

    async def remove_topics(self, topic_ids: Sequence[UUID]) -> list[Exception | None]:
        """Remove topics' folders, if they are there; their logs are closed.

        Returns why one could not be removed, or None.
        """
        loop = asyncio.get_running_loop()
        with waiting_for("removing the folders of deleted topics (%d now)", len(topic_ids)):
            return await loop.run_in_executor(self._removing, self._remove_topics, topic_ids)

    async def doom(self, partitions: Sequence[DeletedPartition]) -> None:
        """Take deleted partitions' folders out of the places of new ones; their logs are closed.

        What fails is reported only: a new partition puts aside what it finds in its place.
        """
        await self._run(partial(self.doom_now, partitions))

    def doom_now(self, partitions: Sequence[DeletedPartition]) -> None:
        """Do the same; blocks."""
        for partition in partitions:
            if (failure := failure_of(self._doom, partition)) is not None:
                logger.warning("a deleted partition's folder is left as it is: %s", failure)

    async def remove_partitions(
        self, partitions: Sequence[DeletedPartition]
    ) -> list[Exception | None]:
        """Remove the folders of partitions that were doomed, if they are there.

        Returns why one could not be removed, or None.
        """
        loop = asyncio.get_running_loop()
        with waiting_for("removing the folders of %d deleted partitions", len(partitions)):
            return await loop.run_in_executor(self._removing, self._remove_partitions, partitions)

    async def remove_folders(self, made: NewFolders) -> None:
        """Remove what `make_folders` made, for partitions that came to nothing."""
        await self._run(partial(self._remove_folders, made))

    def tidy(self, known: Mapping[str, str]) -> None:
        """Finish what a crash cut short, and report folders that are missing, or too many.

        `known` has the names of the folders that there must be, with the names of their topics.
        """
        with os.scandir(self._topics_folder) as entries:
            names = {entry.name for entry in entries}
        for name in known.keys() - names:
            logger.error(
                "topic %s is closed: %s is missing; `penstock recover` shows what can be done",
                *(known[name], self._topics_folder / name),
            )
        for name in names - known.keys():
            folder = self._topics_folder / name
            if folder.suffix == DELETED_SUFFIX or _is_unused(folder):
                self._removing.submit(_remove_tree, folder)
            else:
                logger.warning(
                    "%s belongs to no topic and is left alone; see `penstock recover`", folder
                )

    def close(self) -> None:
        self.flusher.close()
        self._threads.shutdown()
        # A removal that did not begin yet is for the next start.
        self._removing.shutdown(cancel_futures=True)

    async def _run(self, job: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._threads, job)

    def _make_folders(self, wanted: Sequence[NewFolders]) -> list[StorageError | None]:
        failures = make_folders(self._files.make_directory, self._topics_folder, wanted)
        return [
            None if failure is None else self._refusal(new, failure)
            for new, failure in zip(wanted, failures, strict=True)
        ]

    def _refusal(self, new: NewFolders, failure: OSError) -> StorageError:
        logger.error("no folder was made for a topic: %s", failure)
        self._remove_folders(new)
        refusal = StorageError("there is no place for it; the broker's log says why")
        refusal.__cause__ = failure
        return refusal

    def _open_log(self, identity: PartitionIdentity, config: LogConfig, leader_epoch: int) -> Log:
        topic_id = UUID(identity.topic_id)
        folder = partition_directory(self.data_folder, topic_id, identity.index)
        try:
            identity.check(folder)
        except IdentityError as error:
            raise LogMissingError(f"{error}; `penstock recover` shows what can be done") from error
        return LocalLog.open(folder, config, self._files, self.flusher, leader_epoch)

    def _look_at(
        self, partitions: Sequence[tuple[UUID, int]], look: Callable[[FileSystem, Path], ResultT]
    ) -> list[ResultT | None]:
        found: list[ResultT | None] = []
        for topic_id, index in partitions:
            try:
                found.append(
                    look(self._files, partition_directory(self.data_folder, topic_id, index))
                )
            except OSError as error:
                logger.warning("a log was not looked at: %s", error)
                found.append(None)
        return found

    def _rewrite(self, topics: Collection[TopicIdentity]) -> None:
        for topic in topics:
            try:
                topic.write(topic_directory(self.data_folder, UUID(topic.id)))
            except OSError as error:
                logger.warning("the folder of %s does not say its change: %s", topic.topic, error)

    def _remove_folders(self, made: NewFolders) -> None:
        topic_id = UUID(made.topic.id)
        if made.is_new_topic:
            shutil.rmtree(topic_directory(self.data_folder, topic_id), True)
            return
        for index in made.partitions:
            shutil.rmtree(partition_directory(self.data_folder, topic_id, index), True)

    def _doom(self, partition: DeletedPartition) -> None:
        folder = partition_directory(self.data_folder, partition.topic_id, partition.number)
        if is_of_partition(folder, partition.id):
            folder.rename(_doomed(folder, partition.id))
            self._files.sync_directory(folder.parent)

    def _remove_partitions(self, partitions: Sequence[DeletedPartition]) -> list[Exception | None]:
        return [failure_of(self._remove_partition, partition) for partition in partitions]

    def _remove_partition(self, partition: DeletedPartition) -> None:
        self._doom(partition)
        folder = partition_directory(self.data_folder, partition.topic_id, partition.number)
        _remove_tree(_doomed(folder, partition.id))
        if folder.parent.exists():
            self._files.sync_directory(folder.parent)

    def _remove_topics(self, topic_ids: Sequence[UUID]) -> list[Exception | None]:
        return [failure_of(self._remove_topic, topic_id) for topic_id in topic_ids]

    def _remove_topic(self, topic_id: UUID) -> None:
        folder = topic_directory(self.data_folder, topic_id)
        doomed = folder.with_suffix(DELETED_SUFFIX)
        if folder.exists():
            # Renamed first: whoever finds what a crash leaves of it knows that it is rubbish.
            folder.replace(doomed)
        _remove_tree(doomed)


def made_folder(folder: Path) -> Path:
    """Return a folder's absolute path, once it is there. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def _doomed(folder: Path, partition_id: int) -> Path:
    """Return what the folder of a partition that was deleted is called until it is removed."""
    return folder.with_name(f"{folder.name}.{partition_id}{DELETED_SUFFIX}")


def _remove_tree(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _is_unused(folder: Path) -> bool:
    """Whether a topic's folder is what a creation leaves that did not come to its end."""
    return folder.is_dir() and all(
        each.is_dir() or each.stem == Path(IDENTITY_FILE).stem for each in folder.rglob("*")
    )


def _write_missing(identity: TopicIdentity | PartitionIdentity, folder: Path) -> None:
    if folder.is_dir() and not (folder / IDENTITY_FILE).exists():
        identity.write(folder)
        RealFileSystem().sync_directory(folder)
