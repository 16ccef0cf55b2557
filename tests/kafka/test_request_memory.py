"""Goal: a request that waits counts in the node's memory for what it takes, and not for its frame
alone: a small element of a frame becomes a large object.

Method: requests of every API and array, with numbers and strings that are all unlike, are parked
behind a fetch that waits, and Python's own allocations are compared with what is counted.
"""

from __future__ import annotations

import asyncio
import itertools
import tracemalloc
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from kafka_arrays import all_arrays
from kafka_dialog import Dialog
from penstock.kafka.wire import api
from penstock.kafka.wire.schema import Field, StructType
from penstock.limits import KAFKA_ELEMENTS_AT_ONCE

NUMBERS = {"int8": 1 << 6, "int16": 1 << 14, "uint16": 1 << 15, "int32": 1 << 30, "int64": 1 << 60}
"""A number of each size; those above the smallest are objects of their own."""


def value(field: Field, numbers: Iterator[int]) -> object:
    if field.type == "int8":
        return 1
    if field.type in NUMBERS:
        return NUMBERS[field.type] + next(numbers)
    return f"{next(numbers) % 4096:x}" if field.type == "string" else UUID(int=next(numbers))


def element(types: Any, field: Field, numbers: Iterator[int]) -> object:
    if field.struct is None:
        return value(field, numbers)
    plain = [each for each in field.struct.fields if each.type in {*NUMBERS, "string", "uuid"}]
    values = {
        each.name: value(each, numbers) for each in plain if not each.is_array and not each.tag
    }
    return getattr(types, field.struct.name)(**values)


def with_many(types: Any, root: StructType, path: tuple[Field, ...]) -> Any:
    numbers = itertools.count(1)
    made = message = getattr(types, root.name)()
    *outer, last = path
    for field in outer:
        inner = getattr(types, field.struct.name)()  # type: ignore[union-attr]  # holds an array
        setattr(made, field.name, [inner] if field.is_array else inner)
        made = inner
    count = KAFKA_ELEMENTS_AT_ONCE - len(outer)
    setattr(made, last.name, [element(types, last, numbers) for _ in range(count)])
    return message


def parked(dialog: Dialog) -> None:
    """Have whatever comes wait: of the lanes, some wait for a fetch and some for those."""
    dialog.send("Fetch", 12, **dialog.fetch_fields((0, 0), max_wait_ms=600_000))
    dialog.send("Metadata")


def taken(dialog: Dialog, frame: memoryview) -> tuple[int, int]:
    """Return what such a request takes, and what is counted of it."""
    answers = dialog.conversation.answers
    dialog.take(frame)  # The first one of a version has its decoder compiled.
    waiting, counted = len(answers), answers.request_bytes
    tracemalloc.start()
    dialog.take(frame)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(answers) == waiting + 1
    return size, answers.request_bytes - counted


async def test_a_parked_request_is_counted_at_what_it_takes(dialog: Dialog) -> None:
    await dialog.create_topic()
    parked(dialog)
    over = {}
    for many in (each for each in all_arrays() if not each.are_new):
        types = api(many.name).request
        request = with_many(types, types.root, many.path)
        size, counted = taken(dialog, dialog.frame(many.name, many.version, request))
        if size > counted:
            over[str(many)] = (size, counted)
    size, counted = taken(dialog, dialog.frame("Metadata", 9, api("Metadata").request()))
    dialog.conversation.pipeline.cancel()
    assert not over
    assert size <= counted <= 2 * size, "one without elements"


async def test_a_request_that_is_decoded_in_steps_holds_what_it_takes(dialog: Dialog) -> None:
    """And nothing of it any more once it is answered."""
    memory = dialog.broker.memory
    asked = api("Metadata").request.MetadataRequestTopic
    names = [asked(name=f"t{number}") for number in range(10 * KAFKA_ELEMENTS_AT_ONCE)]
    most = 0
    answer = dialog.send("Metadata", 9, topics=names, allow_auto_topic_creation=False)
    while not answer.done():
        await asyncio.sleep(0)
        most = max(most, memory.reads.used)
    assert most > 100 * len(names)
    assert memory.reads.used == 0
