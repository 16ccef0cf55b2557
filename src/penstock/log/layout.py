"""Where things lie inside a data folder; readers in other processes rely on it too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

CLUSTER_ID_FILE: Final = "cluster-id"
DATABASE_FILE: Final = "metadata.sqlite"
IDENTITY_FILE: Final = "penstock.json"
"""In the data folder and each folder of a topic or a partition: what the folder is."""
DELETED_SUFFIX: Final = ".deleted"
"""How the name of a topic's folder ends that is being removed."""


def topics_directory(data_folder: Path) -> Path:
    """The folder of all topics' folders."""
    return data_folder / "topics"


def topic_directory(data_folder: Path, topic_id: UUID) -> Path:
    """The folder of one topic: named by id, so that a name used again never meets old bytes."""
    return topics_directory(data_folder) / topic_id.hex


def partition_directory(data_folder: Path, topic_id: UUID, index: int) -> Path:
    """The folder of one partition's segments; `index` counts from 0."""
    return topic_directory(data_folder, topic_id) / str(index)
