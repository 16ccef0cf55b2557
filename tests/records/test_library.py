"""The library of compiled kernels: which file is loaded, and what is said where none can be."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_compiler import machine_code
from kernel_compiler.build import build
from penstock.records.kernels import library
from penstock.records.kernels.library import KernelsError

INTEL = "fpu sse2 sse4_1 sse4_2 popcnt avx avx2 bmi1 bmi2 f16c fma abm movbe xsave pclmulqdq"


@pytest.fixture
def on_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> object:
    """Make the library believe what /proc/cpuinfo says there."""

    def there(machine: str, *lines: str) -> None:
        (tmp_path / "cpuinfo").write_text("\n".join(lines))
        monkeypatch.setattr(platform, "machine", lambda: machine)
        monkeypatch.setattr(library, "_PROCESSOR", tmp_path / "cpuinfo")

    return there


class TestWhichLevel:
    def test_the_best_that_the_processor_has_all_of(self, on_a_machine) -> None:
        on_a_machine("x86_64", "processor\t: 0", f"flags\t\t: {INTEL} avx512f", "")
        assert library.best_level().name == "x86-64-v3"

    @pytest.mark.parametrize("missing", ["avx2", "bmi2", "movbe", "pclmulqdq"])
    def test_one_feature_less_is_the_level_below(self, on_a_machine, missing: str) -> None:
        on_a_machine("x86_64", f"flags : {INTEL.replace(missing, '')}")
        assert library.best_level().name == "x86-64-v2"

    @pytest.mark.parametrize("lines", [(), ("flags :",), ("Features : fp asimd",), ("\0",)])
    def test_the_lowest_where_nothing_is_known(self, on_a_machine, lines: tuple[str]) -> None:
        on_a_machine("x86_64", *lines)
        assert library.best_level() == library.levels()[-1]
        on_a_machine("aarch64", *lines)
        assert library.best_level().name == "generic"

    def test_the_lowest_where_linux_does_not_say(self, monkeypatch, tmp_path: Path) -> None:
        monkeypatch.setattr(library, "_PROCESSOR", tmp_path / "missing")
        assert library.best_level() == library.levels()[-1]

    def test_a_processor_without_kernels_is_named(self, on_a_machine) -> None:
        on_a_machine("riscv64")
        with pytest.raises(KernelsError, match="no kernels for riscv64, only for x86_64, aarch64"):
            library.best_level()


class TestWhatCanNotBeLoaded:
    def test_a_missing_library_is_one_clear_error(self, monkeypatch, tmp_path: Path) -> None:
        monkeypatch.setattr(library, "FOLDER", tmp_path)
        with pytest.raises(KernelsError, match=r"missing.*run `.*python.* -m kernel_compiler`"):
            library.require()

    def test_an_installed_package_has_no_compiler(self, monkeypatch, tmp_path: Path) -> None:
        monkeypatch.setattr(library, "FOLDER", tmp_path)
        monkeypatch.setattr(library, "_COMPILER", tmp_path / "kernel_compiler")
        with pytest.raises(KernelsError, match=r"missing.*install Penstock again"):
            library.require()

    def test_a_file_that_is_no_library(self, monkeypatch, tmp_path: Path) -> None:
        monkeypatch.setattr(library, "FOLDER", tmp_path)
        library.path_of("x86-64-v2").write_bytes(b"torn")
        with pytest.raises(KernelsError, match=r"can't be loaded: .*; run"):
            library.load("x86-64-v2")

    def test_a_library_that_is_older_than_its_source(self, monkeypatch) -> None:
        monkeypatch.setattr(library, "source_digest", lambda: "another")
        with pytest.raises(KernelsError, match="older than their source; run"):
            library.require()

    def test_a_change_anywhere_in_the_source_is_noticed(self, monkeypatch, tmp_path: Path) -> None:
        records, compiler = tmp_path / "penstock" / "records", tmp_path / "kernel_compiler"
        files = [
            records / "a.py",
            records / "iggy" / "b.py",
            tmp_path / "penstock" / "log" / "header.py",
            compiler / "c.py",
        ]
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        monkeypatch.setattr(library, "_SOURCE", tmp_path)
        monkeypatch.setattr(library, "_COMPILER", compiler)
        seen = {library.source_digest()}
        for file in files:
            file.write_text("changed")
            seen.add(library.source_digest())
        assert len(seen) == 1 + len(files)

    def test_the_broker_does_not_start_without(self, tmp_path: Path) -> None:
        program = (
            "import pathlib, sys\n"
            "from penstock.records.kernels import library\n"
            "library.FOLDER = pathlib.Path('/nowhere')\n"
            "from penstock.cli import main\n"
            "sys.argv = ['penstock', 'serve', '--data-folder', sys.argv[1]]\n"
            "main()"
        )
        command = [sys.executable, "-c", program, str(tmp_path / "data")]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        assert "the compiled kernels are missing" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert not (tmp_path / "data").exists()


class TestBuilding:
    def test_the_library_is_made_from_this_source(self) -> None:
        for level in library.levels():
            assert library.is_up_to_date(library.path_of(level.name)), "run `make kernels`"

    def test_nothing_is_compiled_again(self) -> None:
        before = {path: path.stat().st_mtime_ns for path in library.FOLDER.iterdir()}
        assert {path: path.stat().st_mtime_ns for path in build()} == before

    def test_a_machine_without_a_linker_uses_the_one_that_was_installed(self, monkeypatch) -> None:
        monkeypatch.setattr("shutil.which", lambda _: None)
        monkeypatch.setattr(machine_code, "find_spec", lambda _: object())
        assert machine_code.linker() == (sys.executable, "-m", "ziglang", "ld.lld")

    def test_the_library_needs_python_and_no_other(self) -> None:
        """What it calls of libc is told from its names: none has more than one version in use."""
        for level in library.levels():
            text = library.path_of(level.name).read_bytes()
            assert b"PyInit_kernels" in text
            for other in (b"numba", b"NRT_", b"GLIBC", b"libc.so", b"libpython"):
                assert other not in text, other
