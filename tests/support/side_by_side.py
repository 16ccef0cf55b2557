"""Two brokers, an original and Penstock, that are asked the same random steps and answer alike."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, Self, TypeAlias, TypeVar

Asked = TypeVar("Asked", bound="Twin")
Outcome: TypeAlias = object
Step: TypeAlias = Callable[[Asked], Outcome]
Weights: TypeAlias = Mapping[Callable[[random.Random], Step[Asked]], int]
"""What makes each kind of step of random choices, and how often it is made."""


class Twin(Protocol):
    """A client of one of the two."""

    def do(self, step: Step[Self]) -> Outcome:
        """Return what comes of a step, without anything that a broker may choose."""


def ask_alike(twins: Sequence[Asked], weights: Weights[Asked], number: int, count: int) -> None:
    """Ask the original and then Penstock so many steps; the number of a run makes it again.

    Both are asked at the same time, for some of what they know runs out.
    """
    chance = random.Random(number)
    asked = []
    with ThreadPoolExecutor(len(twins)) as threads:
        for place in range(count):
            make = chance.choices([*weights], [*weights.values()])[0]
            step = make(chance)
            expected, answered = threads.map(lambda twin, step=step: twin.do(step), twins)
            chosen = inspect.getclosurevars(step).nonlocals
            asked.append(f"{place} {make.__name__} {chosen}: {expected}")
            assert answered == expected, "\n".join([*asked, f"Penstock: {answered}"])
