"""How much of the processor a benchmark's broker has used."""

from __future__ import annotations

from pathlib import Path

from penstock.server.data_folder import LOCK_NAME


def broker_in(folder: Path) -> int:
    """Return the process that `running_broker` runs in a folder."""
    return int((folder / "data" / LOCK_NAME).read_text())


def cpu_seconds(process: int) -> float:
    """Return what all threads of a process have used.

    By the scheduler's account, which counts nanoseconds: what ps and psutil say is in ticks of 10
    ms, as long as a few hundred small requests take. A thread that has ended is counted no more.
    """
    stats = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in stats) / 1e9
