"""Compiled functions: nothing is loaded before it is needed, and where they are kept."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock import records
from penstock.records.kernels import cache as kernel_cache
from penstock.records.kernels.cache import cache_directory

HEAVY = ("numba", "numpy", "pyarrow", "llvmlite")


def in_a_fresh_process(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_package_loads_nothing_heavy() -> None:
    loaded = in_a_fresh_process("import sys, penstock.records; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_conversion_needs_no_arrow() -> None:
    program = "import sys, penstock.records.conversion; print('pyarrow' in sys.modules)"
    assert in_a_fresh_process(program) == "False"


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


@pytest.fixture
def fresh_choice() -> None:
    cache_directory.cache_clear()


@pytest.mark.usefixtures("fresh_choice")
class TestWhereTheyAreKept:
    @pytest.fixture(autouse=True)
    def _forget(self) -> object:
        yield
        cache_directory.cache_clear()

    def test_where_the_environment_says(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
        assert cache_directory().parent == tmp_path / "mine"

    def test_beside_the_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
        assert cache_directory().parent == Path(kernel_cache.__file__).parents[1] / "__pycache__"

    def test_in_the_users_cache_where_the_package_is_read_only(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        packages = Path(kernel_cache.__file__).parents[1]
        monkeypatch.setattr(
            kernel_cache, "_writable", lambda folder: not folder.is_relative_to(packages)
        )
        assert cache_directory().parent == tmp_path

    def test_in_a_folder_of_the_process_where_nothing_can_be_written(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(kernel_cache, "_writable", lambda _: False)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        assert cache_directory().parent == tmp_path
        assert cache_directory().is_dir()

    def test_the_next_process_finds_the_temporary_folder_again(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(kernel_cache, "_writable", lambda _: False)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        first = cache_directory()
        cache_directory.cache_clear()
        assert cache_directory() == first
        assert list(tmp_path.iterdir()) == [first]

    @pytest.mark.parametrize("damage", ["others may write", "a link", "a file"])
    def test_a_temporary_folder_that_others_can_change_is_not_used(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
    ) -> None:
        monkeypatch.setattr(kernel_cache, "_writable", lambda _: False)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        first = cache_directory()
        first.rmdir()
        if damage == "others may write":
            first.mkdir()
            first.chmod(0o777)
        elif damage == "a link":
            first.symlink_to(tmp_path)
        else:
            first.touch()
        cache_directory.cache_clear()
        assert cache_directory() != first
        assert cache_directory().is_dir()

    def test_a_folder_of_one_process_goes_with_it(self, tmp_path: Path) -> None:
        program = (
            "from penstock.records.kernels import cache\n"
            "cache._writable = lambda _: False\n"
            "cache._temporary = lambda _: None\n"
            "print(cache.cache_directory().is_dir())"
        )
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        command = [sys.executable, "-c", program]
        said = subprocess.run(command, capture_output=True, check=True, env=environment).stdout
        assert said.strip() == b"True"
        assert list(tmp_path.iterdir()) == []

    def test_a_file_in_the_way_can_not_be_written_to(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
        assert cache_directory().parent != tmp_path / "file"
        assert os.access(cache_directory(), os.W_OK)

    def test_all_is_there_only_when_that_was_marked(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
        assert not kernel_cache.is_complete()
        kernel_cache.mark_complete()
        assert kernel_cache.is_complete()

    def test_one_process_compiles_and_the_others_find_it(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "penstock.records.kernels.compile"]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
            with kernel_cache.compiling_alone():
                second = subprocess.Popen(command, env=environment)
                with pytest.raises(subprocess.TimeoutExpired):
                    second.wait(1)
                kernel_cache.mark_complete()
            assert second.wait(60) == 0
        assert not list(tmp_path.rglob("*.nbi"))
