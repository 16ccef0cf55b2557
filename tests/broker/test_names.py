"""Every topic has one name in each protocol, and the names lead back to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.errors import InvalidTopicNameError
from penstock.broker.topics.names import NamespaceName, TopicName


@pytest.mark.parametrize(
    ("name", "kafka", "pulsar", "stream"),
    [
        (
            TopicName("public", "default", "orders"),
            "orders",
            "persistent://public/default/orders",
            "default",
        ),
        (
            TopicName("public", "shop", "orders"),
            "shop.orders",
            "persistent://public/shop/orders",
            "shop",
        ),
        (
            TopicName("acme", "shop", "orders"),
            "acme.shop.orders",
            "persistent://acme/shop/orders",
            "acme.shop",
        ),
        (
            TopicName("acme", "us-west/shop", "orders"),
            "acme.us-west_2Fshop.orders",
            "persistent://acme/us-west/shop/orders",
            "acme.us-west/shop",
        ),
    ],
)
def test_one_topic_has_three_names(name: TopicName, kafka: str, pulsar: str, stream: str) -> None:
    assert name.kafka == kafka
    assert name.pulsar == pulsar
    assert name.in_namespace.iggy == stream
    assert TopicName.from_pulsar(pulsar) == name
    assert TopicName.from_iggy(stream, name.topic) == name


def test_dots_in_a_kafka_name_are_no_namespace() -> None:
    name = TopicName.from_kafka("payments.orders.v1")
    assert name == TopicName("public", "default", "payments.orders.v1")
    assert name.kafka == "payments.orders.v1"


@pytest.mark.parametrize("short", ["orders", "public/default/orders"])
def test_short_pulsar_names(short: str) -> None:
    assert TopicName.from_pulsar(short) == TopicName("public", "default", "orders")


@pytest.mark.parametrize("bad", ["", ".", "..", "a b", "a/b", "ü", "x" * 250, "orders\n"])
def test_names_that_kafka_forbids(bad: str) -> None:
    with pytest.raises(InvalidTopicNameError):
        TopicName.from_kafka(bad)


@pytest.mark.parametrize(
    "bad", ["", "/", "persistent://", "persistent:///x", "non-persistent://a/b/c", "http://x"]
)
def test_names_that_pulsar_forbids(bad: str) -> None:
    with pytest.raises(InvalidTopicNameError):
        TopicName.from_pulsar(bad)


@given(st.text(alphabet="abcXYZ019._-", min_size=1, max_size=40))
def test_a_kafka_name_leads_back_to_itself(name: str) -> None:
    if name in {".", ".."}:
        return
    assert TopicName.from_kafka(name).kafka == name


@given(st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable() and "/" not in text))
def test_a_pulsar_topic_with_any_characters_has_a_legal_kafka_name(topic: str) -> None:
    try:
        name = TopicName.from_pulsar(f"persistent://public/default/{topic}")
    except InvalidTopicNameError:
        return
    assert TopicName.from_kafka(name.kafka).kafka == name.kafka


@given(st.text(alphabet="ab.", min_size=1, max_size=8))
def test_a_stream_name_leads_back_to_itself(stream: str) -> None:
    if not stream.startswith("public."):
        assert NamespaceName.from_iggy(stream).iggy == stream


def test_name_that_is_too_long_for_kafka_is_cut_and_stays_its_own() -> None:
    first, second = (TopicName("public", "s" * 200, "t" * 199 + end) for end in "ab")
    for name in (first, second):
        assert len(name.kafka) == 249
        assert name.kafka.startswith("s" * 200 + ".ttt")
        TopicName.from_kafka(name.kafka)
    assert first.kafka != second.kafka
