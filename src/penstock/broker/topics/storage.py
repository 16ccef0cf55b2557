"""The logs of a node inside its data folder."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.broker.errors import StorageError
from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.layout import CLUSTER_ID_FILE, partition_directory, topic_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path
    from uuid import UUID

    from penstock.log import Log

ResultT = TypeVar("ResultT")

_DELETED_SUFFIX: Final = ".deleted"
_THREADS: Final = 4

logger = logging.getLogger(__name__)


class Storage:
    """Makes, opens and removes logs, off the event loop; knows nothing of what is in them.

    `leader_epoch` is what new batches are stamped with (KIP-101). Batches that were stamped with a
    higher one count as damaged, so it never falls from one start to the next.
    """

    def __init__(self, data_folder: Path, config: LogConfig, leader_epoch: int) -> None:
        self.data_folder = data_folder.absolute()
        self.leader_epoch = leader_epoch
        self._topics_folder = made_folder(self.data_folder / "topics")
        self._config = config
        self._files = RealFileSystem()
        self.flusher = Flusher()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="logs")
        # One of its own: what takes long keeps nobody from opening a log.
        self._removing = ThreadPoolExecutor(1, thread_name_prefix="removal")

    def cluster_id(self) -> str:
        """Return the id of this data folder, made at the first start: 22 URL-safe characters."""
        file = self.data_folder / CLUSTER_ID_FILE
        if not file.exists():
            made = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
            unfinished = file.with_suffix(".new")
            unfinished.write_text(made)
            unfinished.replace(file)
        return file.read_text().strip()

    async def make_logs(
        self, topic_id: UUID, indexes: Collection[int], segment_bytes: int
    ) -> dict[int, Log]:
        """Make the folders and logs of a topic's new partitions: all of them, or none.

        Raises StorageError.
        """
        return await self._run(partial(self._make_logs, topic_id, indexes, segment_bytes))

    async def open_log(self, topic_id: UUID, index: int, segment_bytes: int) -> Log:
        """Open a log that was made, recovering it where need be. Raises LogError and OSError."""
        return await self._run(partial(self._open_log, topic_id, index, segment_bytes))

    async def remove_topic(self, topic_id: UUID) -> None:
        """Remove a topic's folder, if it is there; its logs are closed. Raises OSError."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._removing, self._remove_topic, topic_id)

    async def remove_partitions(self, topic_id: UUID, indexes: Collection[int]) -> None:
        """Remove what `make_logs` made, for partitions that came to nothing."""
        await self._run(partial(self._remove_partitions, topic_id, indexes))

    def tidy(self, known: Collection[str]) -> None:
        """Finish deletions that were cut short, and name folders that belong to no topic.

        `known` are the names of folders that belong to one.
        """
        with os.scandir(self._topics_folder) as entries:
            names = {entry.name for entry in entries}
        for name in names.difference(known):
            folder = self._topics_folder / name
            if folder.suffix == _DELETED_SUFFIX:
                self._removing.submit(_remove_tree, folder)
            else:
                logger.warning(
                    "%s belongs to no topic; it is left alone, and may be removed by hand", folder
                )

    def close(self) -> None:
        self.flusher.close()
        self._threads.shutdown()
        # A removal that did not begin yet is for the next start.
        self._removing.shutdown(cancel_futures=True)

    async def _run(self, job: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._threads, job)

    def _make_logs(
        self, topic_id: UUID, indexes: Collection[int], segment_bytes: int
    ) -> dict[int, Log]:
        try:
            return {index: self._open_log(topic_id, index, segment_bytes) for index in indexes}
        except OSError as error:
            logger.error("no folder was made for a topic: %s", error)  # noqa: TRY400
            self._remove_partitions(topic_id, indexes)
            raise StorageError("there is no place for it; the broker's log says why") from error

    def _open_log(self, topic_id: UUID, index: int, segment_bytes: int) -> Log:
        return LocalLog.open(
            partition_directory(self.data_folder, topic_id, index),
            replace(self._config, segment_bytes=segment_bytes),
            self._files,
            self.flusher,
            self.leader_epoch,
        )

    def _remove_partitions(self, topic_id: UUID, indexes: Collection[int]) -> None:
        for index in indexes:
            shutil.rmtree(partition_directory(self.data_folder, topic_id, index), True)
        folder = topic_directory(self.data_folder, topic_id)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()

    def _remove_topic(self, topic_id: UUID) -> None:
        folder = topic_directory(self.data_folder, topic_id)
        doomed = folder.with_suffix(_DELETED_SUFFIX)
        if folder.exists():
            # Renamed first: whoever finds what a crash leaves of it knows that it is rubbish.
            folder.replace(doomed)
        _remove_tree(doomed)


def made_folder(folder: Path) -> Path:
    """Return a folder's absolute path, once it is there. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def _remove_tree(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
