"""What the tests of transactions, of epochs and of the offsets within them begin with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from transaction_house import House


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    house.start()
    yield house
    await house.close()
