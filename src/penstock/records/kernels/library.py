"""The compiled kernels: one file for each level of processor, of which one is loaded.

They are made when the package is built (`kernel_compiler`), which only then needs a compiler. In a
checkout they may be older than the source; then nothing is loaded.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).with_name("compiled")
MODULE: Final = "kernels"
"""The name that the library's files know themselves by."""

_PROCESSOR: Final = Path("/proc/cpuinfo")
_SOURCE: Final = Path(__file__).parents[3]
_COMPILER: Final = _SOURCE / "kernel_compiler"
_SUFFIX: Final = ".abi3.so"
"""Of what works with every version of Python from the one on that it was made for."""


class Level(NamedTuple):
    """A set of instructions that compilers know by this name, as Linux lists its features."""

    name: str
    features: frozenset[str]


def _level(name: str, features: str) -> Level:
    return Level(name, frozenset(features.split()))


_X86_64_V3: Final = "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave pclmulqdq"
"""The last is no part of that level, but all processors of it have it."""
LEVELS: Final = {
    "x86_64": (
        _level("x86-64-v3", _X86_64_V3),
        _level("x86-64-v2", ""),
    ),
    "aarch64": (_level("generic", ""),),
}
"""Of each kind of processor, the best first; the last is for all that numpy runs on.

What x86-64-v4 adds makes no kernel faster.
"""


class KernelsError(ImportError):
    """The compiled kernels can't be loaded."""


def compiled(name: str) -> Callable[..., Any]:
    """Return the compiled form of a kernel. Raises KernelsError."""
    return getattr(_loaded(), name)  # type: ignore[no-any-return]


def require() -> None:
    """Raise KernelsError where the kernels could not be loaded, without loading them."""
    path = path_of(best_level().name)
    if not path.exists():
        raise KernelsError(f"the compiled kernels are missing: there is no {path}; {_hint()}")
    if _COMPILER.is_dir() and not is_up_to_date(path):
        raise KernelsError(f"the compiled kernels are older than their source; {_hint()}")


def load(level: str) -> ModuleType:
    """Return the kernels that were compiled for this level. Raises KernelsError."""
    path = str(path_of(level))
    spec = spec_from_file_location(MODULE, path, loader=ExtensionFileLoader(MODULE, path))
    assert spec is not None
    assert spec.loader is not None
    try:
        library = module_from_spec(spec)
        spec.loader.exec_module(library)
    except ImportError as error:
        raise KernelsError(f"the compiled kernels can't be loaded: {error}; {_hint()}") from error
    return library


def path_of(level: str) -> Path:
    """Return where the kernels lie that are compiled for a level."""
    return FOLDER / f"{level}{_SUFFIX}"


def is_up_to_date(path: Path) -> bool:
    """Whether kernels were compiled from what is the source now, in a checkout."""
    return path.exists() and source_digest().encode() in path.read_bytes()


@cache
def _loaded() -> ModuleType:
    require()
    return load(best_level().name)


def _hint() -> str:
    if _COMPILER.is_dir():
        return f"run `{sys.executable} -m {_COMPILER.name}`"
    return "install Penstock again"


def best_level() -> Level:
    """Return the level that this processor has all features of. Raises KernelsError."""
    features = processor_features()
    return next(level for level in levels() if level.features <= features)


def levels() -> tuple[Level, ...]:
    """Return the levels of this kind of processor, the best first. Raises KernelsError."""
    machine = platform.machine()
    if machine not in LEVELS:
        raise KernelsError(f"there are no kernels for {machine}, only for {', '.join(LEVELS)}")
    return LEVELS[machine]


def processor_features() -> frozenset[str]:
    """Return what Linux says that the processor can do; nothing where it doesn't say."""
    try:
        with _PROCESSOR.open(encoding="utf-8", errors="replace") as lines:
            return _features(lines)
    except OSError:
        return frozenset()


def source_digest() -> str:
    """Return what changes with any file that the compiled kernels depend on, in a checkout."""
    records = _SOURCE / "penstock" / "records"
    header = _SOURCE / "penstock" / "log" / "header.py"
    digest = hashlib.sha256()
    for path in (*sorted(records.rglob("*.py")), header, *sorted(_COMPILER.rglob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _features(lines: Iterable[str]) -> frozenset[str]:
    for line in lines:
        name, _, features = line.partition(":")
        if name.strip() == "flags":
            return frozenset(features.split())
    return frozenset()
