from __future__ import annotations

from typing import Any

import pytest

from penstock.pipeline.jobs.progress import PACE_SECONDS, LateRows, Pace, Progress


def test_the_pace_is_that_of_the_newest_seconds() -> None:
    pace = Pace()
    assert pace.at(0.0) == 0
    pace.add(0.0, 0)
    pace.add(10.0, 1000)
    assert pace.at(10.0) == 100
    assert pace.at(20.0) == 50
    pace.add(10.0 + 2 * PACE_SECONDS, 2000)
    pace.add(10.0 + 3 * PACE_SECONDS, 7000)
    assert pace.at(10.0 + 3 * PACE_SECONDS) == 5000 / PACE_SECONDS


@pytest.mark.parametrize(
    ("behind", "pace", "to_go"),
    [(None, 10.0, None), (0, 0.0, 0.0), (100, 0.0, None), (100, 10.0, 10.0)],
)
def test_what_is_to_go_is_known_where_pace_and_rows_are(
    behind: int | None, pace: float, to_go: float | None
) -> None:
    assert Progress(1, 10, behind, 1.0, pace).seconds_to_go == to_go


def test_late_rows_are_counted_once_a_batch() -> None:
    late = LateRows()
    late.see(None)
    for batch in (0, 0, 2):
        late.see(reported(batch, 3, addBatch=20))
    assert late.rows == 6
    # Spark waits for batch 3 and says so, and then batch 3 is done.
    late.see(reported(3, 0))
    late.see(reported(3, 4, addBatch=20))
    assert late.rows == 10


def reported(batch: int, late: int, **durations: int) -> dict[str, Any]:
    operators = [{"numRowsDroppedByWatermark": late}]
    return {"batchId": batch, "durationMs": durations, "stateOperators": operators}
