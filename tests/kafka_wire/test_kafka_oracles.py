"""Every version of every message against two other implementations, in both directions.

A message of ours is read by the other, compared field by field, written by the other again, and
must be the same bytes, which we read back to the message we began with.
"""

from __future__ import annotations

import datetime as dt
import importlib
import io
import pkgutil
import random
from collections.abc import Iterator
from dataclasses import fields
from typing import Any
from uuid import UUID

import kafka.protocol
import kio.index
import kio.serial
import pytest
from kafka.protocol.api_message import ApiMessage

from kafka_samples import joined, message_types, random_message, versions
from penstock.kafka.wire import APIS, NO_UUID, AnyApi, MessageType, Struct

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLISECOND = dt.timedelta(milliseconds=1)
MESSAGES_EACH = 4
RENAMED = {
    "generationid": ["generationidormemberepoch"],
    "acceptablerecoverylag": ["acceptablerecoverylaglegacy"],
    "authorizedoperations": ["clusterauthorizedoperations", "topicauthorizedoperations"],
}
"""Names in the oracles, whose protocol is a release older or which rename, and ours."""


def _plain(name: str) -> str:
    """A field's name without what the oracles spell in other ways."""
    return name.replace("_", "").lower().removesuffix("ms")


def _value_named(ours: Struct, name: str) -> object:
    names = {_plain(each): each for each in ours.field_names}
    candidates = [*RENAMED.get(_plain(name), []), _plain(name)]
    return getattr(ours, next(names[each] for each in candidates if each in names))


def _kio_value(value: object, ours: object) -> object:
    """A value of kio as the wire has it."""
    match value:
        case dt.timedelta():
            return value // MILLISECOND
        case dt.datetime():
            return (value - EPOCH) // MILLISECOND
        case None if isinstance(ours, UUID):
            return NO_UUID
        case None if isinstance(ours, int):
            return -1
    return value


def _assert_like_kio(ours: object, theirs: object) -> None:
    if isinstance(ours, Struct):
        for field in fields(theirs):  # type: ignore[arg-type]
            _assert_like_kio(_value_named(ours, field.name), getattr(theirs, field.name))
    elif isinstance(ours, list):
        assert isinstance(theirs, tuple)
        for one, other in zip(ours, theirs, strict=True):
            _assert_like_kio(one, other)
    else:
        assert ours == _kio_value(theirs, ours)


def _kio_schema(api: AnyApi, version: int, kind: str) -> type | None:
    load = kio.index.load_request_schema if kind == "request" else kio.index.load_response_schema
    try:
        return load(api.key, version)
    except kio.index.KioIndexError:
        return None


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_kio_reads_and_writes_the_same(api: AnyApi) -> None:
    chance = random.Random(api.key)
    for kind, message_type in message_types(api):
        for version in versions(api):
            schema = _kio_schema(api, version, kind)
            if schema is None:
                continue
            read, write = kio.serial.entity_reader(schema), kio.serial.entity_writer(schema)
            for _ in range(MESSAGES_EACH):
                message = random_message(message_type, version, chance)
                encoded = joined(message_type.encode(message, version))
                theirs, size = read(encoded, 0)
                assert size == len(encoded)
                _assert_like_kio(message, theirs)
                out = io.BytesIO()
                write(out, theirs)
                assert out.getvalue() == encoded
                assert message_type.decode(out.getvalue(), version) == message


def test_kio_has_nearly_all_apis() -> None:
    compared = [
        api.key
        for api in APIS
        if any(_kio_schema(api, version, "request") for version in versions(api))
    ]
    assert len(compared) >= 89


def _kafka_python_classes() -> Iterator[type[ApiMessage]]:
    for module_info in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module_info.name and "generate" not in module_info.name:
            module = importlib.import_module(module_info.name)
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, ApiMessage):
                    yield value


KAFKA_PYTHON = {
    (each.API_KEY, each.type): each for each in _kafka_python_classes() if each is not ApiMessage
}


def _kafka_python_value(value: object, ours: object) -> object:
    """A value of kafka-python as we have it."""
    match value:
        case set():  # authorised operations
            unsigned = sum(1 << operation for operation in value)
            return unsigned - (unsigned >> 31 << 32)
        case None if isinstance(ours, UUID):
            return NO_UUID
        case None if isinstance(ours, int):
            return -(2**31)
        case None if isinstance(ours, Struct):  # a tagged field at its default
            return type(ours)()
    return value


def _assert_like_kafka_python(ours: object, theirs: object) -> None:
    if isinstance(ours, Struct) and theirs is not None:
        for name in theirs.fields:  # type: ignore[attr-defined]
            if name in theirs.__slots__:
                _assert_like_kafka_python(_value_named(ours, name), getattr(theirs, name))
    elif isinstance(ours, list) and theirs is not None:
        for one, other in zip(ours, theirs, strict=True):  # type: ignore[call-overload]
            _assert_like_kafka_python(one, other)
    else:
        value = _kafka_python_value(theirs, ours)
        assert value in (ours, str(ours)) if isinstance(ours, UUID) else value == ours


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_kafka_python_reads_and_writes_the_same(api: AnyApi) -> None:
    chance = random.Random(api.key + 1000)
    for kind, message_type in message_types(api):
        oracle = KAFKA_PYTHON.get((api.key, kind))
        if oracle is None:
            continue
        for version in versions(api):
            if version <= oracle.max_version:
                _compare_with_kafka_python(oracle, message_type, version, chance)


def _compare_with_kafka_python(
    oracle: type[ApiMessage], message_type: MessageType[Any], version: int, chance: random.Random
) -> None:
    for _ in range(MESSAGES_EACH):
        message = random_message(message_type, version, chance)
        if message_type.root.name == "ApiVersionsResponse":
            message.error_code = 0  # kafka-python takes any error for a version 0 answer
        encoded = joined(message_type.encode(message, version))
        theirs = oracle.decode(encoded, version=version)
        _assert_like_kafka_python(message, theirs)
        theirs._header = None  # which its own decoder leaves unset, and its encoder looks at
        assert theirs.encode(version=version) == encoded
        assert message_type.decode(encoded, version) == message


def test_kafka_python_has_the_first_versions() -> None:
    assert len(KAFKA_PYTHON) >= 104
