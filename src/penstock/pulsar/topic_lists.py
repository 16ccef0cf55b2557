"""The topics of a namespace as Pulsar clients list them: by name, by pattern, and by their hash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from penstock.broker.topics.names import NamespaceName
from penstock.limits import PULSAR_TOPIC_PATTERN
from penstock.pace import Pace
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.topics import pulsar_names
from penstock.pulsar.wire.pulsar_api_pb2 import ServerError
from penstock.requests import patterns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.catalogue import Topics
    from penstock.requests.call import Client

_PARTITION: Final = re.compile(r"-partition-\d+$")


class TopicPattern(NamedTuple):
    """A client's regular expression that a whole name has to match, without scheme and partition.

    It is one of RE2, as those are that Pulsar's own broker tries first (PIP-336).
    """

    client: Client
    text: str

    @classmethod
    async def of(cls, client: Client, text: str) -> TopicPattern:
        """Raises RefusedError where it is none, or too long."""
        text = _without_scheme(text)
        if len(text) > PULSAR_TOPIC_PATTERN:
            raise _refused(f"a pattern has at most {PULSAR_TOPIC_PATTERN} characters")
        try:
            await patterns.matching(client, text, ())
        except patterns.InvalidPatternError as error:
            raise _refused(str(error)) from error
        return cls(client, text)

    async def matching(self, names: Iterable[str]) -> list[str]:
        """Return the names that match; those of one topic's partitions stand together."""
        pace = Pace()
        topics: dict[str, list[str]] = {}
        for name in names:
            topics.setdefault(_PARTITION.sub("", _without_scheme(name)), []).append(name)
            if pace.is_over():
                await pace.others()
        found = await patterns.matching(self.client, self.text, topics)
        return [name for topic in found for name in topics[topic]]


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
    return await pattern.matching(names)


def topics_hash(names: Iterable[str]) -> str:
    """Return Pulsar's hash of a list of topics: the CRC-32C, its lowest byte written first."""
    checksum: int = crc32c(",".join(sorted(names)).encode())
    return checksum.to_bytes(4, "little").hex()


def _without_scheme(name: str) -> str:
    return name.rpartition("://")[2]


def _refused(reason: str) -> RefusedError:
    return RefusedError(ServerError.NotAllowedError, reason)
