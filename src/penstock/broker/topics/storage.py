"""The logs of a node inside its data folder."""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.layout import CLUSTER_ID_FILE, partition_directory, topic_directory

if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from pathlib import Path

    from penstock.log import Log

_DELETED_SUFFIX: Final = ".deleted"

logger = logging.getLogger(__name__)


class Storage:
    """Opens, closes and removes logs; knows nothing of what is in them.

    `leader_epoch` is what new batches are stamped with (KIP-101). Batches that were stamped with a
    higher one count as damaged, so it never falls from one start to the next.
    """

    def __init__(self, data_folder: Path, config: LogConfig, leader_epoch: int) -> None:
        self.data_folder = data_folder.absolute()
        self._topics_folder = made_folder(self.data_folder / "topics")
        self._config = config
        self._leader_epoch = leader_epoch
        self._files = RealFileSystem()
        self.flusher = Flusher()

    def cluster_id(self) -> str:
        """Return the id of this data folder, made at the first start: 22 URL-safe characters."""
        file = self.data_folder / CLUSTER_ID_FILE
        if not file.exists():
            made = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
            unfinished = file.with_suffix(".new")
            unfinished.write_text(made)
            unfinished.replace(file)
        return file.read_text().strip()

    def open_logs(
        self, topic_id: UUID, indexes: Iterable[int], segment_bytes: int
    ) -> dict[int, Log]:
        """Open or create the logs of a topic's partitions, recovering what needs it; blocks."""
        config = replace(self._config, segment_bytes=segment_bytes)
        return {
            index: LocalLog.open(
                partition_directory(self.data_folder, topic_id, index),
                config,
                self._files,
                self.flusher,
                self._leader_epoch,
            )
            for index in indexes
        }

    async def delete_topic(self, topic_id: UUID) -> None:
        """Remove a deleted topic's folder, whose logs are closed."""
        folder = topic_directory(self.data_folder, topic_id)
        doomed = folder.with_suffix(_DELETED_SUFFIX)
        # Renamed first: what a crash leaves of it is known to be rubbish at the next start.
        folder.replace(doomed)
        await asyncio.to_thread(shutil.rmtree, doomed)

    def tidy(self, known: Container[UUID]) -> None:
        """Finish deletions that were cut short, and name folders that belong to no topic."""
        for folder in self._topics_folder.iterdir():
            if folder.suffix == _DELETED_SUFFIX:
                shutil.rmtree(folder)
            elif _topic_id(folder.name) not in known:
                logger.warning(
                    "%s belongs to no topic; it is left alone, and may be removed by hand", folder
                )

    def close(self) -> None:
        self.flusher.close()


def made_folder(folder: Path) -> Path:
    """Return a folder's absolute path, once it is there. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def _topic_id(name: str) -> UUID | None:
    try:
        return UUID(hex=name)
    except ValueError:
        return None
