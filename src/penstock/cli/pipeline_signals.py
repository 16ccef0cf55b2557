"""What ends a run that a person or a service manager interrupts: in order first, then at once."""

from __future__ import annotations

import signal
from typing import Protocol


class Stoppable(Protocol):
    """What a signal stops."""

    def stop(self) -> None:
        """End soon, in order."""


def stop_on_signals(run: Stoppable) -> None:
    """Stop in order at the first signal, and at once at the second."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def stop(*_: object) -> None:
        run.stop()
        for number in numbers:
            signal.signal(number, signal.default_int_handler)

    for number in numbers:
        signal.signal(number, stop)
