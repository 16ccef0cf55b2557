from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from penstock import allocator
from penstock.limits import CONVERSIONS_BYTES, MIB
from penstock.memory import Memory

PROGRAM = """
import resource
from penstock.allocator import keep_freed_memory

def faults_of(times):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        # Two at a time: freed together, they are more than what is kept by default.
        bytes(bytearray(4 << 20))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults_of(4)
usual = faults_of(20)
keep_freed_memory(256 << 20)
faults_of(4)
print(usual, faults_of(20))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told what to keep")
def test_freed_buffers_are_used_again_without_page_faults() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    usual, kept = map(int, ran.stdout.split())
    assert usual > 10_000
    assert kept < 1_000


def test_what_a_load_left_is_given_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    memory = Memory()
    monkeypatch.setattr(memory, "measure", lambda: None)
    monkeypatch.setattr(allocator, "return_freed_memory", lambda: tries.append(unknown))
    freed = allocator.FreedMemory(memory)
    for megabytes in (0, 20, 40, 60, 70, 70, 70, 100, 110, 40, 60, 80):
        unknown = CONVERSIONS_BYTES + megabytes * MIB
        memory.unknown.take(unknown - memory.unknown.used)
        freed.look()
    assert [(each - CONVERSIONS_BYTES) // MIB for each in tries] == [40, 100, 80]
