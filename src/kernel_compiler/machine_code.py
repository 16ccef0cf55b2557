"""From LLVM's language to a shared library for one level of processor."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import llvmlite.binding

from kernel_compiler.folding import defined

if TYPE_CHECKING:
    from penstock.records.kernels.library import Level

_llvm: Any = llvmlite.binding
_OPTIMIZATION: Final = 3
_MULTIPLIES: Final = "pclmulqdq"
"""What Linux calls the instruction that multiplies without carries."""


def write_library(bitcode: bytes, level: Level, path: Path) -> None:
    """Compile a module for a level and link it; `path` is there only when it is whole."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".linking-") as folder:
        compiled, linked = Path(folder) / "kernels.o", Path(folder) / path.name
        compiled.write_bytes(_compiled(bitcode, level))
        options = ("-shared", "--strip-all", "-z", "relro", "-z", "now")
        command = (*linker(), *options, "-o", str(linked), str(compiled))
        subprocess.run(command, check=True)  # noqa: S603  # our own command
        linked.replace(path)


def linker() -> tuple[str, ...]:
    """Return the command of the machine's linker, or of one that was installed for the build."""
    found = shutil.which("ld")
    if found is None and find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "ld.lld")
    return (found or "ld",)


def _compiled(bitcode: bytes, level: Level) -> bytes:
    _llvm.initialize_native_target()
    _llvm.initialize_native_asmprinter()
    module = _llvm.parse_bitcode(bitcode)
    folds = _MULTIPLIES in level.features
    module.link_in(_llvm.parse_assembly(defined(folds=folds)))
    target = _llvm.Target.from_triple(_llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=level.name,
        features="+pclmul" if folds else "",
        opt=_OPTIMIZATION,
        reloc="pic",
        codemodel="default",
    )
    for symbol in (*module.functions, *module.global_variables):
        if not symbol.is_declaration and not symbol.name.startswith("PyInit_"):
            symbol.linkage = "internal"
    options = _llvm.create_pipeline_tuning_options(_OPTIMIZATION)
    options.loop_vectorization = options.slp_vectorization = True
    passes = _llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    _refuse_unknown(module)
    compiled: bytes = machine.emit_object(module)
    return compiled


def _refuse_unknown(module: Any) -> None:
    """The library must find everything that it calls in any Python, and nothing of numba's."""
    called = {function.name for function in module.functions if function.is_declaration}
    unknown = {name for name in called if not name.startswith(("Py", "llvm."))}
    assert not unknown, f"no Python has {', '.join(sorted(unknown))}"
