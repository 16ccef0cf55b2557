"""What a broker's watchdog said of its event loop.

Only what kept the processor busy fails a test: on a machine that others use too, a disk or the
interpreter's lock may be waited for without anybody's fault. What waits on the loop is counted
instead of timed, by `FaultyBroker.disk.loop_waits`.
"""

from __future__ import annotations

import re

from penstock import limits
from penstock.server.watchdog import STALL

_STALL = re.compile(rf"{STALL} \d+ ms \(busy (\d+) ms.*")


def busy_stalls(log: str) -> list[str]:
    """The lines of a broker's log that tell of a turn that was busy for longer than it may be."""
    return [
        found[0] for found in _STALL.finditer(log) if int(found[1]) > limits.LOOP_TURN_MILLISECONDS
    ]
