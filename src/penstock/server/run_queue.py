"""How long a thread had to wait for the processor, which is no time of its own making."""

from __future__ import annotations

import os


class RunQueue:
    """How long a thread of this process was ready to run and another one had the processor.

    Linux says it (https://docs.kernel.org/scheduler/sched-stats.html); elsewhere it is 0.
    """

    def __init__(self, native_thread_id: int) -> None:
        try:
            path = f"/proc/self/task/{native_thread_id}/schedstat"
            self._file: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = None

    def seconds(self) -> float:
        if self._file is None:
            return 0.0
        return int(os.pread(self._file, 100, 0).split()[1]) / 1e9

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
