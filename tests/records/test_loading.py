"""Conversions: nothing is loaded before it is needed, and no compiler ever."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from penstock import records

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


async def test_the_loop_goes_on_while_all_is_made_ready() -> None:
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)

    ticking = asyncio.create_task(tick())
    await records.prepare()
    ticking.cancel()
    assert records.is_loaded()
    assert longest < 5
    await asyncio.wait_for(records.prepare(), 0.1)
