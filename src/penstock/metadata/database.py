"""The interface of a database engine: what the store needs of SQLite, or of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from penstock.metadata.statements import Kind, Statement

Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = "Mapping[str, object]"
NO_PARAMETERS: Parameters = {}


class Database(Protocol):
    """One connection. Every call blocks, and only one thread calls at a time.

    All failures are exceptions of the type `error` but those of values that the engine can't hold.
    """

    @property
    def error(self) -> type[Exception]: ...

    @property
    def words(self) -> Mapping[Kind, str]:
        """What CREATE TABLE calls the kinds of columns."""

    def execute(
        self, statement: Statement, rows: Sequence[Parameters] = (NO_PARAMETERS,)
    ) -> list[Row]:
        """Run a statement once for each row of parameters; return the rows that it read."""

    def transaction(self) -> AbstractContextManager[None]:
        """What happens inside is durable after it; where it raises, nothing of it is kept."""

    def schema_change(self) -> AbstractContextManager[None]:
        """A transaction in which a table may be replaced: its rows keep those that reference it."""

    def close(self) -> None: ...
