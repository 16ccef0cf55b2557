"""Building the library of kernels beside the source of its package."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.records.kernels import declaring, library


def build() -> list[Path]:
    """Write one file for each level of this machine's kind of processor, if any is out of date.

    Returns all of them. It is for a process of its own, in which kernels are left uncompiled.
    """
    levels = library.levels()
    paths = [library.path_of(level.name) for level in levels]
    if not all(map(library.is_up_to_date, paths)):
        bitcode = _translated(library.source_digest())
        # Only now, because LLVM takes long to load.
        from kernel_compiler.machine_code import write_library  # noqa: PLC0415

        library.FOLDER.mkdir(exist_ok=True)
        for level, path in zip(levels, paths, strict=True):
            write_library(bitcode, level, path)
    return paths


def _translated(digest: str) -> bytes:
    # What numba would optimize for no processor in particular is optimized for each level later.
    os.environ["NUMBA_OPT"] = "0"
    declaring.interpret()
    from kernel_compiler.translation import translate  # noqa: PLC0415

    bitcode: bytes = translate(digest)
    return bitcode
