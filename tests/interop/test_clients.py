"""What each real client writes, each real client reads, by the rules of docs/interop.md."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from broker_process import BrokerProcess
from interop_clients import (
    CODECS,
    Client,
    IggyClient,
    KafkaClient,
    Message,
    PulsarClient,
    create_topic,
    shown_by_pulsar,
)

TEXT_NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8
).filter(lambda name: not name.startswith("penstock."))
SHORT = st.binary(min_size=1, max_size=40) | st.binary(min_size=255, max_size=255)
ANY = st.binary(max_size=40) | st.binary(min_size=256, max_size=2_000)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20).map(str.encode)
TIMES = st.integers(1_000_000_000_000, 1_700_000_000_000)

KAFKA = st.builds(
    Message,
    value=st.none() | ANY,
    key=st.none() | ANY,
    headers=st.lists(st.tuples(TEXT_NAMES, st.none() | ANY), max_size=4).map(tuple),
    time_ms=TIMES,
)
PULSAR = st.builds(
    Message,
    value=ANY,
    key=st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=9).map(str.encode),
    headers=st.dictionaries(TEXT_NAMES, TEXTS, max_size=3).map(lambda named: (*named.items(),)),
    time_ms=st.none() | TIMES,
)
IGGY = st.builds(
    Message,
    value=st.binary(min_size=1, max_size=2_000),
    key=st.none() | SHORT,
    headers=st.dictionaries(TEXT_NAMES, SHORT, max_size=3).map(lambda named: (*named.items(),)),
    time_ms=st.none(),
)


class Party(NamedTuple):
    """One writer, what it can say, and three readers of its topic."""

    writer: Client
    messages: st.SearchStrategy[Message]
    kafka: KafkaClient
    pulsar: PulsarClient
    iggy: IggyClient


WRITERS: dict[str, tuple[Callable[[BrokerProcess, str], Client], st.SearchStrategy[Message]]] = {
    "iggy": (IggyClient, IGGY),
    "pulsar-single": (lambda *where: PulsarClient(*where, batching=False), PULSAR),
}
for kafka_codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    WRITERS[f"kafka-{kafka_codec}"] = (
        lambda *where, codec=kafka_codec: KafkaClient(*where, codec),
        KAFKA,
    )
for pulsar_codec in CODECS:
    WRITERS[f"pulsar-{str(pulsar_codec).rpartition('.')[2].lower()}"] = (
        lambda *where, codec=pulsar_codec: PulsarClient(*where, codec),
        PULSAR,
    )


@pytest.fixture(scope="module", params=WRITERS)
def party(request: pytest.FixtureRequest, shared_server: BrokerProcess) -> Iterator[Party]:
    make, messages = WRITERS[request.param]
    topic = f"interop-{request.param}"
    create_topic(shared_server, topic)
    where = (shared_server, topic)
    clients = (make(*where), KafkaClient(*where), PulsarClient(*where), IggyClient(*where))
    yield Party(clients[0], messages, *clients[1:])
    for client in clients:
        client.close()


def restored(message: Message) -> dict[str, list[bytes | None]]:
    """The headers of the writer, from what a reader of another protocol sees."""
    headers = message.own_headers()
    packed: dict[int, dict[int, bytes]] = {}
    for name, value in message.headers:
        if name.startswith("penstock.base64."):
            headers.setdefault(name.removeprefix("penstock.base64."), []).append(
                base64.b64decode(value or b"")
            )
        elif name.startswith("penstock.header."):
            index, _, part = name.removeprefix("penstock.header.").partition(".")
            packed.setdefault(int(index), {})[int(part or 0)] = value or b""
    for _, parts in sorted(packed.items()):
        name, _, value = b"".join(parts[part] for part in sorted(parts)).partition(b":")
        content = None if value == b"-" else base64.b64decode(value)
        headers.setdefault(base64.b64decode(name).decode(), []).append(content)
    return headers


def the_same(headers: dict[str, list[bytes | None]]) -> dict[str, list[bytes | None]]:
    """Headers as they compare where one of several may be said in another way than the rest."""
    return {name: sorted(values, key=repr) for name, values in headers.items()}


@settings(
    # The topics keep what was written, so no example can be tried again.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_all_clients_read_what_one_wrote(party: Party, data: st.DataObject) -> None:
    written = data.draw(st.lists(party.messages, min_size=1, max_size=6))
    party.writer.write(written)
    by_kafka = party.kafka.read(len(written))
    by_pulsar = party.pulsar.read(len(written))
    by_iggy = party.iggy.read(len(written))
    for wrote, kafka, pulsar, iggy in zip(written, by_kafka, by_pulsar, by_iggy, strict=True):
        assert kafka.value == wrote.value
        assert pulsar.value == iggy.value == (wrote.value or b"")
        assert (iggy.said("penstock.tombstone") is not None) == (wrote.value is None)

        assert kafka.key == wrote.key
        assert pulsar.key == shown_by_pulsar(wrote.key)
        headers = restored(iggy)
        assert headers.pop("penstock.key", [iggy.key]) == [wrote.key]

        assert the_same(kafka.own_headers()) == the_same(wrote.own_headers())
        assert the_same(restored(pulsar)) == the_same(wrote.own_headers())
        assert the_same(headers) == the_same(wrote.own_headers())

        assert kafka.time_ms == pulsar.time_ms == iggy.time_ms
        assert wrote.time_ms in {None, kafka.time_ms}
