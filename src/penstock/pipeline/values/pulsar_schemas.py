"""Schemas that a Pulsar broker keeps of its topics, instead of a registry.

A message of Pulsar's says which version of its topic's schema it was written with. Kinds that are
records are read: AVRO, and JSON, whose definition is in Avro's notation too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from penstock.clients.access import LoginError
from penstock.clients.pulsar.client import PulsarClient, RefusedError
from penstock.pipeline.values.registry import (
    TIMEOUT_SECONDS,
    RegisteredSchema,
    RegistryError,
    UnknownSchemaError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEME: Final = "pulsar://"
_PORT: Final = 6650
_KINDS: Final = {"Avro": "AVRO", "Json": "JSON"}


def latest_schema(url: str, option: str, names: Sequence[str]) -> RegisteredSchema:
    """Return the newest schema of the first of these topics that has one. Raises RegistryError."""
    *likely, last = names
    for topic in likely:
        try:
            return _ask(url, option, topic, None)
        except UnknownSchemaError:
            continue
    return _ask(url, option, last, None)


@lru_cache(maxsize=1000)
def schema_of_version(url: str, option: str, topic: str, version: int) -> RegisteredSchema:
    """Return a version, which never changes; this process remembers it. Raises RegistryError."""
    return _ask(url, option, topic, version)


def full_names(topic: str) -> tuple[str, ...]:
    """Return what a topic of this name in Kafka may be called in Pulsar, the likeliest first.

    A dot stands between tenant, namespace and topic, or is a part of the topic's name. With a
    slash it is Pulsar's name already.
    """
    if "/" in topic:
        return (topic if "://" in topic else f"persistent://{topic}",)
    names = [f"public/default/{topic}"]
    if topic.count(".") >= 1:
        names.append("public/" + topic.replace(".", "/", 1))
    if topic.count(".") > 1:
        names.append(topic.replace(".", "/", 2))
    return tuple(f"persistent://{name}" for name in names)


def _ask(url: str, option: str, topic: str, version: int | None) -> RegisteredSchema:
    servers = _address(url, option)
    at = f"{option}: the Pulsar broker at {servers}"
    try:
        with PulsarClient(servers, timeout_s=TIMEOUT_SECONDS) as client:
            found = client.schema(topic, version)
    except (OSError, RefusedError, LoginError) as error:
        raise RegistryError(
            f"{at} does not answer: {error}. Start it, or correct {option}"
        ) from None
    if found is None:
        which = "" if version is None else f" in version {version}"
        raise UnknownSchemaError(f"{at} has no schema of {topic}{which}")
    if found.kind not in _KINDS:
        raise RegistryError(
            f"{at}: values of {topic} are of kind {found.kind}, and columns come of Avro and Json"
        )
    text = found.definition.decode(errors="replace")
    number = found.version
    return RegisteredSchema(_KINDS[found.kind], text, (), number, number, topic)


def _address(url: str, option: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port = None, 0
    if not host or parts.path.strip("/") or parts.username is not None:
        raise RegistryError(
            f"{option}: {url!r} is no Pulsar broker's address: give pulsar://host:port"
        )
    return f"{host}:{port}"
