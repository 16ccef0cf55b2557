"""How commands reach a running broker, and what they say when they do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from penstock.cli.failure import CommandError, UsageError
from penstock.cli.server_choice import DEFAULT_SERVER, SERVER_VARIABLE, choose_server
from penstock.limits import TOPIC_PARTITIONS

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient

__all__ = ["DEFAULT_SERVER", "Server", "chosen_partitions", "connected"]


def _chosen(call: typer.Context, value: str) -> str:
    """Replace what was not on the command line by what else names a broker."""
    source = call.get_parameter_source("server")
    is_flag = source is not None and source.name == "COMMANDLINE"
    context = call.find_root().params.get("context")
    return choose_server(value if is_flag else None, context).address


Server: TypeAlias = Annotated[
    str,
    typer.Option(
        "--server",
        "-s",
        metavar="HOST:PORT",
        envvar=SERVER_VARIABLE,
        callback=_chosen,
        show_default=f"the current context's, or {DEFAULT_SERVER}",
        help="The broker's Kafka address.",
    ),
]

_NEXT_STEPS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "there is no such topic; 'penstock topic list' shows all",
    "TOPIC_ALREADY_EXISTS": "the topic is there already; 'penstock topic describe' shows it",
    "INVALID_TOPIC_EXCEPTION": "a topic's name has letters, digits, '.', '_' and '-'",
    "GROUP_ID_NOT_FOUND": "there is no such group; 'penstock group list' shows all",
    "NON_EMPTY_GROUP": "the group has members: stop them first; "
    "'penstock group describe' shows them",
    "INVALID_PARTITIONS": f"a topic has 1 to {TOPIC_PARTITIONS:,} partitions",
    "UNKNOWN_MEMBER_ID": "the group has members now: stop them first",
    "INVALID_CONFIG": "nothing was changed; "
    "'penstock topic describe TOPIC --settings' shows all settings",
    "POLICY_VIOLATION": "the topic's settings forbid it: a compacted one is not trimmed, and a "
    "terminated one takes no messages; 'penstock topic describe TOPIC --settings' shows them",
    "KAFKA_STORAGE_ERROR": "the broker's disk failed; once it is well, 'penstock topic reopen' "
    "has a topic take writes again",
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
    except UnicodeEncodeError as error:
        raise UsageError("a name on the command line is not UTF-8") from error
    except OSError as error:
        if protocol := _other_protocol(server, error):
            raise CommandError(
                f"{server} is a port for clients of {protocol}, and commands are clients of Kafka: "
                "--server takes the broker's Kafka address, port 9092 unless it was told otherwise"
            ) from error
        reason = str(error).removeprefix(f"no broker answers at {server}: ")
        raise CommandError(
            f"no broker answers at {server} ({reason}); 'penstock serve' starts one, "
            "--server names another, 'penstock context show' says where this address comes from"
        ) from error


def _other_protocol(server: str, error: OSError) -> str | None:
    """Which other protocol is spoken where Kafka's got no answer."""
    if isinstance(error.__cause__, OSError):
        return None  # Nothing listens there.
    from penstock.clients.other_protocols import spoken_at

    return next(filter(None, map(spoken_at, server.split(","))), None)


def chosen_partitions(
    client: KafkaClient, topic: str, partition: int | None, *, create: bool = False
) -> list[int]:
    """Return the partition that was asked for, or all. Raises UsageError when it is not there."""
    (description,) = client.topics([topic], create=create)
    partitions = list(description.partitions)
    if not partitions:
        raise CommandError(f"{topic} has no partitions")
    if partition is None:
        return partitions
    if partition not in partitions:
        there = f"partitions 0 to {partitions[-1]}" if partitions[-1] else "only partition 0"
        raise UsageError(f"--partition: {topic} has {there}, not {partition}")
    return [partition]
