"""Keeps stable generations in the database, so that members outlive the broker.

What is kept of a group is its last stable generation, also while the next one is being made: a
member that is asked to join again may still commit what it read (as Kafka's coordinator does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any, TypeAlias

    from penstock.metadata.classic_groups import (
        ClassicGroupRepository,
        ClassicGroupRow,
        ClassicMemberRow,
    )

    Then: TypeAlias = Callable[[Exception | None], None]
    """Is called when rows are durable, or with why they are not."""


class GroupStore(Protocol):
    """Where a group keeps its generation; writes are carried out in the order of the calls."""

    def save(self, group: ClassicGroupRow, members: Iterable[ClassicMemberRow], then: Then) -> None:
        """Keep a generation instead of the one before."""

    def replace_member(
        self, member_id: str, member: ClassicMemberRow, leader: str, then: Then
    ) -> None:
        """Keep another member in a member's place."""

    def forget(self, group_id: str) -> None:
        """Keep nothing of a group: it has no members. Nobody waits for it."""


class DurableGroupStore:
    """Rows of the database. Implements GroupStore."""

    def __init__(self, repository: ClassicGroupRepository) -> None:
        self._repository = repository
        self._tasks = Tasks()

    def load(self) -> list[tuple[ClassicGroupRow, list[ClassicMemberRow]]]:
        """Read all groups; blocks. Raises MetadataError."""
        members: dict[str, list[ClassicMemberRow]] = {}
        for member in self._repository.members():
            members.setdefault(member.group_id, []).append(member)
        return [(group, members[group.id]) for group in self._repository.all()]

    def save(self, group: ClassicGroupRow, members: Iterable[ClassicMemberRow], then: Then) -> None:
        """See GroupStore."""
        self._start(self._repository.save(group, members), then)

    def replace_member(
        self, member_id: str, member: ClassicMemberRow, leader: str, then: Then
    ) -> None:
        """See GroupStore."""
        self._start(self._repository.replace_member(member_id, member, leader), then)

    def forget(self, group_id: str) -> None:
        """See GroupStore."""
        # Where it fails, the log has a line, and the members' sessions end after the next start.
        self._start(self._repository.delete(group_id), lambda _: None)

    async def close(self) -> None:
        """Return when nothing is on its way to the database."""
        await self._tasks.ended()

    def _start(self, write: Coroutine[Any, Any, None], then: Then) -> None:
        self._tasks.start(_written(write, then), "save a consumer group")


async def _written(write: Coroutine[Any, Any, None], then: Then) -> None:
    try:
        await write
    except Exception as error:  # Whatever it was: members wait for an answer.
        then(error)
    else:
        then(None)
