"""Whatever bytes a client sends or a disk holds: an answer, a refusal, or the end of a connection.

Never another exception, never an error in the broker's log, never long for few bytes. The inputs
are recorded sessions, changed at random; see `fuzzing`. The short runs are the same every time; the
long ones go on where the last one ended, in the folder that PENSTOCK_FUZZ_CORPUS names.
"""

from __future__ import annotations

import logging
import os
import resource
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fuzz_targets import LogTarget, SessionTarget, convert_batches, golden_batches, seeds
from fuzzing import Frames, Fuzzer, Report, Target
from penstock import records

TARGETS = ("kafka", "pulsar", "iggy", "iggy-legacy", "iggy-2023", "records", "log")
SHORT_EXECUTIONS = {
    "kafka": 250,
    "pulsar": 300,
    "iggy": 150,
    "iggy-legacy": 150,
    "iggy-2023": 150,
    "records": 120,
    "log": 60,
}
SHORT_SECONDS = 60
"""Not reached but on a very slow machine."""
LONG_EXECUTIONS = {
    "kafka": 350_000,
    "pulsar": 350_000,
    "iggy": 200_000,
    "iggy-legacy": 100_000,
    "iggy-2023": 100_000,
    "records": 50_000,
    "log": 50_000,
}
"""More than a million in all; more of those that cost less."""
LONG_SECONDS = float(os.environ.get("PENSTOCK_FUZZ_SECONDS", "1200"))
"""Of each target; twice what a processor of its own takes."""
MEMORY = Path("/dev/shm")
GROWTH_MIB = 600
"""Memory that a run may take: what a conversion may, and what the broker keeps."""


@asynccontextmanager
async def opened(name: str, folder: Path) -> AsyncIterator[tuple[Target, Sequence[Frames]]]:
    """A target, and the inputs that it begins with."""
    if name == "records":
        await records.prepare()
        yield convert_batches, golden_batches()
    elif name == "log":
        log = LogTarget(folder)
        yield log, await log.seeds()
        log.close()
    else:
        sessions = SessionTarget(name, folder)
        await records.prepare()
        yield sessions, seeds(name)
        await sessions.close()


async def fuzz(
    name: str, folder: Path, *, executions: int, seconds: float, seed: int, keep: bool
) -> Report:
    async with opened(name, folder) as (target, begin):
        fuzzer = Fuzzer(name, begin, seed=seed, keep=keep)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        report = await fuzzer.run(target, executions=executions, seconds=seconds)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < GROWTH_MIB, f"{grown:.0f} MiB for {report.executions} inputs"
    return report


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: what a disk holds up is not what is tested."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        yield Path(made)


@pytest.mark.parametrize("name", TARGETS)
async def test_changed_inputs_do_no_harm(name: str, folder: Path) -> None:
    report = await fuzz(
        name,
        folder,
        executions=SHORT_EXECUTIONS[name],
        seconds=SHORT_SECONDS,
        seed=8,
        keep=False,
    )
    assert report.kept > 0, "changed inputs reach what recorded ones do not"


@pytest.mark.soak
@pytest.mark.parametrize("name", TARGETS)
async def test_a_million_changed_inputs_do_no_harm(name: str, folder: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_FUZZ_SEED", "0")) or int.from_bytes(os.urandom(4))
    report = await fuzz(
        name,
        folder,
        executions=LONG_EXECUTIONS[name],
        seconds=LONG_SECONDS,
        seed=seed,
        keep=True,
    )
    logging.getLogger(__name__).warning("%s: seed %d, %s", name, seed, report)
