"""What Spark's errors say when its own traces are left out."""

from __future__ import annotations

import re
from typing import Final

_CAUSE: Final = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception)): (.+)$", re.MULTILINE)


def cause_of(error: Exception) -> str:
    """Return the innermost Python error that Spark's message quotes."""
    ours = _CAUSE.findall(str(error))
    return str(ours[-1][1]) if ours else str(error).splitlines()[0]
