"""Runs pytest as the users of `penstock.testing` do: in a process of its own, on their files."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import penstock

SOURCE = Path(penstock.__file__).resolve().parents[1]
PLUGIN = () if entry_points(group="pytest11", name="penstock") else ("-p", "penstock.pytest_plugin")
"""The plugin is found by its entry point where Penstock is installed as it is here."""


def run_pytest(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run all test files of a folder, and return when the process has ended."""
    return run(folder, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *PLUGIN, *flags)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), *extra_paths()])},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def extra_paths() -> list[str]:
    return [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each[:1] == "/"]
