"""Conversions: nothing is loaded before it is needed, and no compiler ever."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from importlib import import_module
from types import ModuleType

import pytest

from penstock import records
from penstock.records import loading

HEAVY = ("numba", "numpy", "pyarrow", "llvmlite")


def in_a_fresh_process(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_package_loads_nothing_heavy() -> None:
    loaded = in_a_fresh_process("import sys, penstock.records; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_conversion_needs_no_arrow_and_no_compiler() -> None:
    program = "import sys, penstock.records.conversion, penstock.records.iggy.cut"
    loaded = in_a_fresh_process(f"{program}; print(*sys.modules)").split()
    assert set(HEAVY) & set(loaded) == {"numpy"}


async def test_the_loop_goes_on_while_all_is_made_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def import_noted(name: str) -> ModuleType:
        threads.append(threading.current_thread())
        return import_module(name)

    monkeypatch.setattr(loading, "_loaded", threading.Event())
    monkeypatch.setattr(loading, "import_module", import_noted)
    await records.prepare()
    assert records.is_loaded()
    assert threads
    assert threading.main_thread() not in threads


async def test_what_is_ready_is_not_made_ready_again() -> None:
    await records.prepare()
    assert records.is_loaded()
    again = asyncio.ensure_future(records.prepare())
    await asyncio.sleep(0)
    assert again.done()
