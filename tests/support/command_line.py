"""What tests of commands share: the shapes of a command that runs in the test's own process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Ran(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


Penstock: TypeAlias = Callable[..., Ran]
