"""Topics of the sink's own at a Pulsar server, in which a query keeps what it has to remember.

A durable subscription keeps a note until it is forgotten, however long nobody asks for it.
"""

from __future__ import annotations

import secrets
import urllib.parse
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import wall_clock
from penstock.clients.pulsar.client import MessageId
from penstock.clients.pulsar.connection import RefusedError
from penstock.clients.pulsar.cursor import Cursor
from penstock.clients.pulsar.producing import Outgoing, Producers, Sender
from penstock.pipeline.clusters.pulsar import full_name, split_name
from penstock.records.pulsar.entry import build_entry, parse_entry
from penstock.records.pulsar.metadata_pb2 import MessageMetadata

if TYPE_CHECKING:
    from penstock.clients.asking import Ask
    from penstock.clients.pulsar.client import PulsarClient

_SUBSCRIPTION: Final = "penstock"
_TOPIC_PREFIX: Final = "penstock-writer-"
_TIMEOUT_S: Final = 30.0


class Note(NamedTuple):
    """What was noted, and its id."""

    id: MessageId
    text: bytes


class Notes:
    """One topic. Methods raise RefusedError and OSError."""

    def __init__(self, client: PulsarClient, topic: str, ask: Ask) -> None:
        self.topic = topic
        self._client = client
        self._ask = ask
        self._cursor = Cursor(client, topic, _SUBSCRIPTION)

    def add(self, text: bytes) -> None:
        """Note something for good; where the connection fails, it may be there twice."""
        self.keep()
        sender = unique_sender(self.topic.rpartition("/")[2])
        producers = Producers(self._client, sender, self._ask)
        producers.send(entry_of(text, self.topic, sender))
        producers.flush()

    def keep(self) -> None:
        """Have the topic keep what is noted from now on: what nobody subscribes to may go."""
        self._ask(self._cursor.subscribe)

    def read(self) -> list[Note]:
        """Return all that is not forgotten, in the order of the topic."""
        return self._ask(self._read)

    def forget(self, last: MessageId) -> None:
        """Forget what is up to a note."""
        self._ask(lambda: self._cursor.acknowledge(last))

    def drop(self) -> None:
        """Have the topic keep nothing, so that a broker may delete it."""
        with suppress(RefusedError):  # Somebody else is about it.
            self._ask(self._cursor.unsubscribe)

    def _read(self) -> list[Note]:
        forgotten, last = self._cursor.place()
        found: list[Note] = []
        if last <= forgotten:
            return found
        reader = self._client.reader(self.topic)
        reader.seek(forgotten._replace(entry=max(forgotten.entry, 0)))
        position = forgotten
        while position < last:
            received = reader.receive(_TIMEOUT_S)
            reader.used(1)
            position = received.id
            if position > forgotten:
                found.append(Note(position, bytes(parse_entry(received.entry).payload)))
        reader.close()
        return found


def unique_sender(name: str) -> Sender:
    """Return a name that no other producer has."""
    return Sender(f"{name}-{secrets.token_hex(8)}")


def entry_of(text: bytes, topic: str, sender: Sender) -> Outgoing:
    """Return the entry of one note."""
    metadata = MessageMetadata(
        producer_name=sender.name,
        sequence_id=sender.first,
        publish_time=wall_clock.now_ms(),
    )
    sender.sign(metadata)
    return Outgoing(topic, sender.first, 1, build_entry(metadata, text))


def topic_of(writer: str, written: str | None, suffix: str) -> str:
    """Return the name of a query's own topic, beside the topic that it writes to if that is one."""
    tenant, namespace, _ = split_name(written or writer)
    name = urllib.parse.quote(f"{_TOPIC_PREFIX}{writer}", safe="")
    return full_name(f"{tenant}/{namespace}/{name}-{suffix}")
