"""Whether database and folders of a data folder belong together, which nothing else may assume."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.errors import DataFolderError
from penstock.broker.topics.identity import IdentityError, NodeIdentity
from penstock.log.layout import (
    CLUSTER_ID_FILE,
    DATABASE_FILE,
    DELETED_SUFFIX,
    IDENTITY_FILE,
    topics_directory,
)

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.metadata.properties import PropertyRepository


class Leadership(NamedTuple):
    """One start of a node: the cluster that its data is, and an epoch that no other start had."""

    cluster_id: str
    epoch: int


def refuse_without_database(data_folder: Path) -> None:
    """Raise DataFolderError where there is data and no database that knows of it."""
    if (data_folder / DATABASE_FILE).exists():
        return
    folders = topics_directory(data_folder)
    topics = [each for each in folders.glob("*") if each.suffix != DELETED_SUFFIX]
    if topics or (data_folder / IDENTITY_FILE).exists():
        raise DataFolderError(
            f"{data_folder / DATABASE_FILE} is missing, and the folders of {len(topics)} topics "
            f"are there; put it back, or see `penstock recover --data-folder {data_folder}`"
        )


def begin_leadership(data_folder: Path, properties: PropertyRepository) -> Leadership:
    """Take the next epoch, once the database is known to be the one of this folder.

    Raises DataFolderError, MetadataError and OSError.
    """
    cluster_id = _cluster_id(data_folder, properties.cluster_id())
    last = _last_epoch(data_folder, cluster_id)
    if last is not None and last > properties.epoch():
        raise DataFolderError(
            f"{data_folder / DATABASE_FILE} is older than the folders beside it: it knows of "
            f"{properties.epoch() + 1} starts, and they have seen {last + 1}; put the newer one "
            f"back, or see `penstock recover --data-folder {data_folder}`"
        )
    properties.keep_cluster_id(cluster_id)
    epoch = properties.next_epoch()
    NodeIdentity(cluster_id, epoch).write(data_folder)
    return Leadership(cluster_id, epoch)


def _cluster_id(data_folder: Path, in_database: str | None) -> str:
    """Return the id of this data, made at the first start: 22 URL-safe characters."""
    file = data_folder / CLUSTER_ID_FILE
    in_folder = file.read_text().strip() if file.exists() else None
    if in_folder is not None and in_database not in {None, in_folder}:
        raise DataFolderError(
            f"{data_folder / DATABASE_FILE} is of cluster {in_database}, and the folders beside it "
            f"are of cluster {in_folder}; put back the one that belongs to them, or see "
            f"`penstock recover --data-folder {data_folder}`"
        )
    made = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    cluster_id = in_folder or in_database or made
    if in_folder is None:
        unfinished = file.with_suffix(".new")
        unfinished.write_text(cluster_id)
        unfinished.replace(file)
    return cluster_id


def _last_epoch(data_folder: Path, cluster_id: str) -> int | None:
    if not (data_folder / IDENTITY_FILE).exists():
        return None  # A release wrote this folder that had no such file, or nobody did yet.
    try:
        found = NodeIdentity.read(data_folder)
    except IdentityError as error:
        raise DataFolderError(
            f"{error}; see `penstock recover --data-folder {data_folder}`"
        ) from error
    if found.cluster != cluster_id:
        raise DataFolderError(
            f"{data_folder / IDENTITY_FILE} is of cluster {found.cluster}, not {cluster_id}; "
            f"see `penstock recover --data-folder {data_folder}`"
        )
    return found.epoch
