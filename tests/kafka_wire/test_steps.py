"""Goal: what is encoded and decoded in steps is what it is at once, in every version."""

from __future__ import annotations

import random

import pytest

from kafka_samples import joined, message_types, random_message, versions
from penstock.kafka.wire import APIS, AnyApi, ManyElementsError, TooManyElementsError, api


@pytest.mark.parametrize("tested", APIS, ids=lambda each: each.name)
async def test_steps_make_the_same(tested: AnyApi) -> None:
    chance = random.Random(tested.key)
    for _, message_type in message_types(tested):
        for version in versions(tested):
            message = random_message(message_type, version, chance)
            data = joined(message_type.encode(message, version))
            assert joined(await message_type.encode_in_steps(message, version)) == data
            decoded, _ = await message_type.decode_in_steps(data, version, 0)
            assert joined(message_type.encode(decoded, version)) == data


def test_what_has_many_elements_is_neither_decoded_nor_encoded_at_once() -> None:
    asked = api("FindCoordinator").request
    frame = joined(asked.encode(asked(coordinator_keys=["a"] * 501), 4))
    decoded, count = asked.decode_counted(frame, 4, 0, 501)
    assert len(decoded.coordinator_keys) == count == 501
    with pytest.raises(TooManyElementsError):
        asked.decode_counted(frame, 4, 0, 500)
    answer = api("FindCoordinator").response
    many = answer(coordinators=[answer.Coordinator()] * 501)
    with pytest.raises(ManyElementsError):
        answer.encode(many, 4, elements_max=500)
