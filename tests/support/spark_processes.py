"""A Spark in a process of its own, which tests end as a crash does, in whole or in part."""

from __future__ import annotations

import os
import signal
import subprocess

import psutil


def kill_driver(process: subprocess.Popen[bytes]) -> None:
    """End the driver with all that it has started; it leads a session of its own."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def kill_workers(process: subprocess.Popen[bytes]) -> int:
    """End the processes in which tasks run; Spark does the tasks again. Return how many it were."""
    killed = 0
    for child in psutil.Process(process.pid).children(recursive=True):
        parent = child.parent()
        # Of all that runs in them; without those that plan a query, it ends.
        if parent is not None and "pyspark.worker" in parent.cmdline():
            child.kill()
            killed += 1
    return killed
