"""Compiling the kernels when a wheel is built, or an editable one, for the machine's processor."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the library of kernels into the wheel, whose tag says where it works."""

    def dependencies(self) -> list[str]:
        """Return what a machine needs besides numba: a linker, where it has none of its own."""
        return [] if shutil.which("ld") else ["ziglang>=0.13,<1"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile what is out of date."""
        source = Path(self.root) / "src"
        sys.path.insert(0, str(source))
        from kernel_compiler.build import build  # noqa: PLC0415

        for path in build():
            build_data["artifacts"].append(f"/{path.relative_to(self.root).as_posix()}")
        build_data["pure_python"] = False
        # The stable ABI of Python 3.11, and of libc nothing that a version of it changed.
        build_data["tag"] = f"cp311-abi3-manylinux_2_17_{platform.machine()}"
