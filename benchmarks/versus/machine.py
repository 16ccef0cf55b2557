"""What a result depends on besides the code: machine, versions and commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import psutil

LIBRARIES: Final = ("confluent-kafka", "pulsar-client", "apache-iggy", "uvloop", "numba", "numpy")


def describe() -> dict[str, Any]:
    return {
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / (1 << 30), 1),
            "system": platform.platform(),
        },
        "versions": {"python": platform.python_version(), "java": _java(), **_libraries()},
        "commit": _commit(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _libraries() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _java() -> str:
    try:
        told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "not installed"
    return told.stderr.partition('"')[2].partition('"')[0]


def _commit() -> str:
    """The commit, marked when the tree holds changes of the broker that are not in it."""
    root = Path(__file__).parents[2]
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", "src")
    return f"{head} with changes" if changed else head


def _git(root: Path, *arguments: str) -> str:
    ended = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    return ended.stdout.strip()
