"""What Spark's Python processes search for garbage, which they do behind each task."""

from __future__ import annotations

import gc
from itertools import count

_calls = count(1)


def spare_modules() -> None:
    """Keep what modules made out of the searches of this process, which take 25 ms each otherwise.

    To be called when a task begins: the second time is for what the first task has imported, and
    from the third on it would keep what tasks leave behind. Whether anything is kept out already
    is not asked of `gc`, which counts it all, for 6 ms.
    """
    if next(_calls) <= 2:
        gc.freeze()
