"""How commands reach a running broker, and what they say when they do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from penstock.cli.failure import CommandError

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient

DEFAULT_SERVER: Final = "127.0.0.1:9092"

Server: TypeAlias = Annotated[
    str, typer.Option("--server", "-s", metavar="HOST:PORT", help="The broker's Kafka address.")
]

_NEXT_STEPS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "there is no such topic; 'penstock topic list' shows all",
    "TOPIC_ALREADY_EXISTS": "the topic is there already; 'penstock topic describe' shows it",
    "INVALID_TOPIC_EXCEPTION": "a topic's name has letters, digits, '.', '_' and '-'",
    "INVALID_PARTITIONS": "a topic has at least one partition",
    "GROUP_ID_NOT_FOUND": "there is no such group; 'penstock group list' shows all",
}


@contextmanager
def connected(server: str) -> Iterator[KafkaClient]:
    """A client of the broker at `server`; what goes wrong ends as a CommandError."""
    from penstock.clients.kafka.client import KafkaClient, KafkaError

    try:
        with KafkaClient(server, client_id="penstock-cli", timeout_s=10) as client:
            yield client
    except KafkaError as error:
        hint = _NEXT_STEPS.get(error.code.name)
        raise CommandError(f"{hint} ({error})" if hint else str(error)) from error
    except OSError as error:
        raise CommandError(
            f"no broker answers at {server} ({error}); "
            "'penstock serve' starts one, --server names another"
        ) from error
