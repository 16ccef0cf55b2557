"""What the shell offers after a Tab: names that the broker and the user's own file know.

It is asked while somebody types, so it is quick, and silent when there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from penstock.cli.context_file import load_contexts
from penstock.cli.failure import CommandError
from penstock.cli.server_choice import choose_server

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient

_TIMEOUT_S: Final = 0.5
"""Of each step: to connect, to be answered."""


def complete_topic(call: typer.Context, incomplete: str) -> list[str]:
    """Names of topics that begin so."""
    return _asked(call, incomplete, lambda client: [topic.name for topic in client.topics()])


def complete_group(call: typer.Context, incomplete: str) -> list[str]:
    """Names of groups that begin so."""
    return _asked(call, incomplete, lambda client: [group.group_id for group in client.groups()])


def complete_context(incomplete: str) -> list[str]:
    """Names of contexts that begin so."""
    try:
        return _beginning(load_contexts().servers, incomplete)
    except CommandError:
        return []


def _asked(
    call: typer.Context, incomplete: str, names: Callable[[KafkaClient], list[str]]
) -> list[str]:
    from penstock.clients.kafka.client import KafkaClient, KafkaError

    try:
        # What was typed so far may name a broker; a wrong address is None here.
        server = call.params.get("server") or choose_server(None, None).address
        with KafkaClient(server, client_id="penstock-completion", timeout_s=_TIMEOUT_S) as client:
            return _beginning(names(client), incomplete)
    except (CommandError, KafkaError, OSError):
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete) and name.isprintable())


TopicName: TypeAlias = Annotated[
    str, typer.Argument(help="The topic's Kafka name.", autocompletion=complete_topic)
]
GroupName: TypeAlias = Annotated[
    str, typer.Argument(help="The group's name.", autocompletion=complete_group)
]
