"""What answers what is registered once, and by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.iggy.handlers import HANDLERS as IGGY
from penstock.kafka.handlers import HANDLERS as KAFKA
from penstock.pulsar.handlers import HANDLERS as PULSAR
from penstock.requests.registry import Registry

PACKAGE = Path(__file__).parents[2] / "src" / "penstock"


def test_nothing_has_two_handlers() -> None:
    registry: Registry[int, Callable[..., object]] = Registry()
    registry.register(1, lambda handle: handle)(print)
    with pytest.raises(AssertionError, match="1 has two handlers"):
        registry.register(1, lambda handle: handle)(repr)
    assert registry == {1: print}


@pytest.mark.parametrize(
    ("protocol", "handlers"),
    [("kafka", KAFKA), ("pulsar", PULSAR), ("iggy", IGGY)],
    ids=["kafka", "pulsar", "iggy"],
)
def test_every_file_that_is_numbered_registers_its_number(
    protocol: str, handlers: Registry[int, object]
) -> None:
    files = (PACKAGE / protocol / "handlers").glob("*_[0-9]*.py")
    numbers = {int(file.stem.split("_")[1]) for file in files}
    assert numbers
    assert numbers <= {int(key) for key in handlers}
