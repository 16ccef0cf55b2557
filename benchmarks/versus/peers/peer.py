"""What a broker that takes part must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar


class Durability(StrEnum):
    """When a broker acknowledges. Both sides of a comparison have the same one."""

    FLUSHED = "flushed"
    """The messages are on stable storage."""
    WRITTEN = "written"
    """The operating system has the messages: they survive the process, but no power cut."""


class NotAvailableError(Exception):
    """The peer can't be had on this machine; the message is the reason that the report gives."""


@dataclass(frozen=True)
class Launch:
    """All that is needed to start a broker."""

    command: list[str]
    data: Path
    """Folder of all that it stores."""
    ports: dict[str, int]
    """By protocol; a port may be listened on only a while after the start."""
    topic_options: dict[str, str] = field(default_factory=dict)
    """Settings that this broker takes per topic instead of per node."""
    environment: dict[str, str] | None = None
    """That of the broker; None is the caller's own."""


class Peer(ABC):
    """One broker that can be had and started. Made once a run, started once a round."""

    name: ClassVar[str]

    version: str = ""
    """Known after `obtain`."""
    client: Path | None = None
    """Folder of a client that fits this broker, where the installed one does not; both sides of
    its comparison are then driven by this one."""

    @abstractmethod
    def obtain(self, cache: Path) -> None:
        """Get what is missing into `cache`, where it stays. Raises NotAvailableError."""

    @abstractmethod
    def setting(self, durability: Durability) -> str:
        """What is set for this durability, in words for the report's table."""

    @abstractmethod
    def prepare(self, folder: Path, durability: Durability) -> Launch:
        """Write into `folder` what comes before the start, which is then timed."""
