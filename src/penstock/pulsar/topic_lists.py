"""The topics of a namespace as Pulsar clients list them: by name, by pattern, and by their hash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fastcrc.crc32 import iscsi as crc32c

from penstock.broker.topics.names import NamespaceName
from penstock.limits import PULSAR_TOPIC_PATTERN
from penstock.pace import Pace
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.topics import pulsar_names
from penstock.pulsar.wire.pulsar_api_pb2 import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.catalogue import Topics

_TOKEN: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|[*+?{]|.", re.DOTALL)
"""An escape, a class, a repetition, or any other character of a pattern."""
_REPETITIONS: Final = frozenset("*+?{")
_MOST_REPETITIONS: Final = 2
_PARTITION: Final = re.compile(r"-partition-\d+$")


class TopicPattern:
    """A regular expression that a whole name has to match, without scheme and partition.

    It is one that takes little time whatever the names are: `re` tries all ways to match, and so a
    client could hold the broker up. Raises RefusedError for others.
    """

    def __init__(self, text: str) -> None:
        text = text.rpartition("://")[2]
        if len(text) > PULSAR_TOPIC_PATTERN:
            raise _refused(f"a pattern has at most {PULSAR_TOPIC_PATTERN} characters")
        tokens = _TOKEN.findall(text)
        repetitions = [at for at, token in enumerate(tokens) if token in _REPETITIONS]
        if (
            len(repetitions) > _MOST_REPETITIONS
            or any(at and tokens[at - 1] == ")" for at in repetitions)
            or "(?" in text
        ):
            raise _refused(
                f"a pattern has at most {_MOST_REPETITIONS} repetitions, none of a group, and no "
                "group with a question mark"
            )
        try:
            self._expression = re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise _refused(f"the pattern is none: {error}") from error

    def matches(self, name: str) -> bool:
        return self._expression.fullmatch(_PARTITION.sub("", _without_scheme(name))) is not None


def read_namespace(text: str) -> NamespaceName:
    """Read `tenant/namespace` or `tenant/cluster/namespace`. Raises RefusedError."""
    tenant, *parts = text.split("/")
    if not all((tenant, *parts)) or len(parts) not in {1, 2}:
        raise _refused(f"{text!r}: write tenant/namespace")
    return NamespaceName(tenant, "/".join(parts))


async def topics_of(
    topics: Topics, namespace: NamespaceName, pattern: TopicPattern | None
) -> list[str]:
    """Return the names of a namespace's topics that match, in order."""
    pace = Pace()
    there = topics.in_namespace(namespace)
    names = (name for topic in there for name in pulsar_names(topic))
    return await pace.sorted(await matching(names, pattern))


async def matching(names: Iterable[str], pattern: TopicPattern | None) -> list[str]:
    """Return the names that match."""
    if pattern is None:
        return await Pace().each(names, lambda name: name)
    found = await Pace().each(names, lambda name: name if pattern.matches(name) else "")
    return [name for name in found if name]


def topics_hash(names: Iterable[str]) -> str:
    """Return Pulsar's hash of a list of topics: the CRC-32C, its lowest byte written first."""
    checksum: int = crc32c(",".join(sorted(names)).encode())
    return checksum.to_bytes(4, "little").hex()


def _without_scheme(name: str) -> str:
    return name.rpartition("://")[2]


def _refused(reason: str) -> RefusedError:
    return RefusedError(ServerError.NotAllowedError, reason)
