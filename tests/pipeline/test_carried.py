"""Workers without Penstock, or with another one, say so in words."""

from __future__ import annotations

import platform
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from pyspark import cloudpickle

import penstock
from penstock.pipeline.carried import CarriedFunction
from penstock.pipeline.jobs.gate import Gate
from penstock.pipeline.sink.options import parse as parse_sink
from penstock.pipeline.sink.writers import BatchWriter, StreamWriter
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.readers import BatchReader, StreamReader

GIVEN = {"penstock.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}
UNPACK = "import pickle, sys; pickle.load(sys.stdin.buffer)"


def unpacked_by_a_worker(content: bytes, folder: Path, before: str) -> str:
    """Return what a Python says that unpickles it after `before`, without a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", before + UNPACK],
        input=content,
        cwd=folder,
        capture_output=True,
        check=False,
    )
    return done.stderr.decode().strip().rpartition("\n")[2]


def test_a_worker_looks_for_garbage_neither_among_modules_nor_among_what_a_task_imports(
    packed: bytes, tmp_path: Path
) -> None:
    before = "import gc, pickle, sys; packed = sys.stdin.buffer.read()\n"
    task = (
        "pickle.loads(packed); print(gc.get_freeze_count())\nmade = [[] for _ in range(10_000)]\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", before + 3 * task],
        input=packed,
        cwd=tmp_path,
        capture_output=True,
        check=True,
    ).stdout
    first, second, third = map(int, said.split())
    assert first > 10_000
    assert second >= first + 10_000
    assert third < second + 1_000, "what tasks leave behind is garbage"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told what to keep")
def test_a_worker_makes_each_batch_in_the_memory_of_the_one_before(
    packed: bytes, tmp_path: Path
) -> None:
    program = """
import pickle, resource, sys
pickle.load(sys.stdin.buffer)
def make():
    for _ in range(20):
        bytes(bytearray(4 << 20))
make()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
make()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    said = subprocess.run(
        [sys.executable, "-c", program],
        input=packed,
        cwd=tmp_path,
        capture_output=True,
        check=True,
    ).stdout
    assert int(said) < 1_000, "pages were touched for the first time"


@pytest.fixture
def packed() -> bytes:
    return cloudpickle.dumps(BatchReader(parse(GIVEN, streaming=False)))


def test_readers_and_writers_come_back_as_they_were() -> None:
    batch = BatchReader(parse(GIVEN, streaming=False))
    again = cloudpickle.loads(cloudpickle.dumps(batch))
    assert type(again) is BatchReader
    assert vars(again) == vars(batch)
    sink = parse_sink({"penstock.bootstrap.servers": "127.0.0.1:1", "topic": "t"}, streaming=False)
    for made in (StreamReader(parse(GIVEN, streaming=True)), BatchWriter(sink), StreamWriter(sink)):
        assert type(cloudpickle.loads(cloudpickle.dumps(made))) is type(made)


def test_a_worker_without_penstock_says_what_to_install(packed: bytes, tmp_path: Path) -> None:
    missing = "import sys; sys.modules['penstock'] = None\n"
    hidden = (
        "import sys\n"
        "class Hides:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'penstock':\n"
        "            raise ModuleNotFoundError('no', name=name)\n"
        "sys.meta_path.insert(0, Hides())\n"
    )
    for before in (missing, hidden):
        said = unpacked_by_a_worker(packed, tmp_path, before)
        assert said.startswith("ModuleNotFoundError: Penstock is missing in the Python of Spark's")
        command = (
            f"{sys.executable} -m pip install 'penstock-broker[spark]=={penstock.__version__}'"
        )
        assert command in said


def test_steps_and_pieces_of_work_say_so_too(tmp_path: Path) -> None:
    gate = Gate("query", 1, None, None, ())  # type: ignore[arg-type]
    function = CarriedFunction(gate.stage)
    assert vars(cloudpickle.loads(cloudpickle.dumps(function)))["_function"].__self__ == gate
    missing = "import sys; sys.modules['penstock'] = None\n"
    for made in (function, CarriedFunction(partial(parse, GIVEN))):
        said = unpacked_by_a_worker(cloudpickle.dumps(made), tmp_path, missing)
        assert said.startswith("ModuleNotFoundError: Penstock is missing in the Python of Spark's")


def test_a_worker_with_another_penstock_says_so(packed: bytes, tmp_path: Path) -> None:
    other = "import penstock; penstock.__version__ = '0.0.9'\n"
    said = unpacked_by_a_worker(packed, tmp_path, other)
    assert said.startswith("ImportError: Penstock 0.0.9 is in the Python of Spark's worker")


def test_what_penstock_itself_lacks_is_named(packed: bytes, tmp_path: Path) -> None:
    said = unpacked_by_a_worker(packed, tmp_path, "import sys; sys.modules['pyarrow'] = None\n")
    assert "pyarrow" in said
    assert "Penstock is missing" not in said
