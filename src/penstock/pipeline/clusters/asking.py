"""A client of another server whose errors are said in the words of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clients.access import LoginError
from penstock.clients.closing import Closing
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.patience import Answer, Patience

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.pipeline.source.options import SourceOptions


class Asking(Closing):
    """Asks `client`, which it closes with itself.

    `refusals` are the errors with which its server refuses, `logins` the options that say who asks.
    """

    def __init__(
        self,
        options: SourceOptions,
        client: Closing,
        refusals: type[Exception],
        logins: str,
        *,
        answered: bool,
    ) -> None:
        self._servers = options.servers
        self._asked = client
        self._refusals = refusals
        self._logins = logins
        self._patience = Patience(answered=answered, retries=options.retries)

    def close(self) -> None:
        self._asked.close()

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        """Return the answer. Raises SourceError."""
        try:
            return self._patience.ask(question)
        except LoginError as error:
            raise SourceError(f"{error}. Correct {self._logins}") from error
        except (self._refusals, OSError) as error:
            raise SourceError(
                f"the server at {self._servers} does not answer as it should: {error}"
            ) from error
