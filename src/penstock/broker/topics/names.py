"""One topic, three ways to say its name."""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

from penstock.broker.errors import InvalidTopicNameError

DEFAULT_TENANT: Final = "public"
DEFAULT_NAMESPACE: Final = "default"
KAFKA_NAME_SIZE_MAX: Final = 249
_DIGEST_SIZE: Final = 16

_ILLEGAL_IN_KAFKA: Final = re.compile(r"[^a-zA-Z0-9._-]")
_PULSAR_NAME: Final = re.compile(r"(?:persistent://)?(?:([^/]+)/([^/]+)/)?([^/].*)", re.DOTALL)
_WITH_CLUSTER: Final = re.compile(r"persistent://([^/]+)/([^/]+/[^/]+)/([^/]+)", re.DOTALL)
"""What a topic had to be called before Pulsar 2.0, and may be before 5.0."""


class NamespaceName(NamedTuple):
    """A namespace of a tenant: what Iggy calls a stream. Pulsar's of before 2.0 are of a cluster,
    and called `cluster/namespace`.
    """

    tenant: str
    namespace: str

    @property
    def iggy(self) -> str:
        """The stream's name: the tenant shows only when it is not the default one."""
        if self.tenant == DEFAULT_TENANT:
            return self.namespace
        return f"{self.tenant}.{self.namespace}"

    @classmethod
    def from_iggy(cls, stream: str) -> NamespaceName:
        """Read a stream's name: what stands before the first dot is the tenant."""
        tenant, dot, namespace = stream.partition(".")
        if dot and tenant and namespace:
            return cls(tenant, namespace)
        return cls(DEFAULT_TENANT, stream)


class TopicName(NamedTuple):
    """A topic's full name, `tenant/namespace/topic`."""

    tenant: str
    namespace: str
    topic: str

    @property
    def in_namespace(self) -> NamespaceName:
        return NamespaceName(self.tenant, self.namespace)

    @property
    def kafka(self) -> str:
        """The name in Kafka: default parts are left out, bytes that Kafka forbids are escaped.

        One that is too long for Kafka is cut, and ends in a digest of the whole.
        """
        parts = [self.topic]
        if self.tenant != DEFAULT_TENANT:
            parts = [self.tenant, self.namespace, self.topic]
        elif self.namespace != DEFAULT_NAMESPACE:
            parts = [self.namespace, self.topic]
        name = _ILLEGAL_IN_KAFKA.sub(_escape, ".".join(parts))
        if len(name) <= KAFKA_NAME_SIZE_MAX:
            return name
        digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_SIZE]
        return f"{name[: KAFKA_NAME_SIZE_MAX - _DIGEST_SIZE - 1]}-{digest}"

    @property
    def pulsar(self) -> str:
        return f"persistent://{self.tenant}/{self.namespace}/{self.topic}"

    @classmethod
    def from_kafka(cls, name: str) -> TopicName:
        """The full name of a topic that Kafka creates: the whole name, dots included, is the topic.

        Kafka's dots mean nothing in Kafka, so none is read as a namespace. Raises
        InvalidTopicNameError.
        """
        if (
            not name
            or len(name) > KAFKA_NAME_SIZE_MAX
            or name in {".", ".."}
            or _ILLEGAL_IN_KAFKA.search(name)
        ):
            raise InvalidTopicNameError(
                f"{name!r}: a topic's name has 1 to {KAFKA_NAME_SIZE_MAX} of the characters "
                "a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or '..'"
            )
        return cls(DEFAULT_TENANT, DEFAULT_NAMESPACE, name)

    @classmethod
    def from_pulsar(cls, name: str) -> TopicName:
        """Read `persistent://tenant/namespace/topic` or its short forms (no `-partition-N`), or
        `persistent://tenant/cluster/namespace/topic`.

        Raises InvalidTopicNameError.
        """
        match = _WITH_CLUSTER.fullmatch(name) or _PULSAR_NAME.fullmatch(name)
        if match is None or "://" in match[3]:
            raise InvalidTopicNameError(
                f"{name!r}: write persistent://tenant/namespace/topic or just topic"
            )
        return _checked(match[1] or DEFAULT_TENANT, match[2] or DEFAULT_NAMESPACE, match[3])

    @classmethod
    def from_iggy(cls, stream: str, topic: str) -> TopicName:
        """The full name of `topic` in `stream`. Raises InvalidTopicNameError."""
        return _checked(*NamespaceName.from_iggy(stream), topic)

    def renamed(self, topic: str) -> TopicName:
        """The full name of another topic of this namespace. Raises InvalidTopicNameError."""
        return _checked(self.tenant, self.namespace, topic)


def _checked(tenant: str, namespace: str, topic: str) -> TopicName:
    name = TopicName(tenant, namespace, topic)
    if not topic or name.kafka in {".", ".."}:
        raise InvalidTopicNameError(f"{topic!r}: a topic's name is not empty, '.' or '..'")
    return name


def _escape(match: re.Match[str]) -> str:
    return "".join(f"_{byte:02X}" for byte in match[0].encode())
