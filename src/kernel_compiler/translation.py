"""Kernels as one module in LLVM's language, which numba makes of them.

Nothing in it refers to numba's own runtime, so that it can be linked and loaded without numba.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

from llvmlite.binding import parse_assembly
from numba import extending, types
from numba.core import compiler, compiler_lock, targetconfig
from numba.core.registry import cpu_target

import penstock.records
from kernel_compiler import intrinsics
from kernel_compiler.entries import Entries
from penstock.records.kernels import declaring
from penstock.records.kernels.arguments import Array

_compiler: Any = compiler
_compiler_lock: Any = compiler_lock
_cpu: Any = cpu_target
_extending: Any = extending
_targetconfig: Any = targetconfig
_types: Any = types
_SCALARS: Final[dict[object, Any]] = {
    int: _types.int64,
    "uint64": _types.uint64,
    type(None): _types.void,
}


def translate(digest: str) -> bytes:
    """Return the bitcode of a Python extension module with every kernel of `penstock.records`.

    Kernels must have been left to the interpreter (`declaring.interpret`).
    """
    _import_kernels()
    context = _cpu.target_context.with_aot_codegen("kernels")
    library = context.codegen().create_library("kernels")
    entries = Entries()
    with _compiler_lock.global_compiler_lock:
        for function in declaring.KERNELS:
            result, arguments = _signature(function)
            symbol = _compile(context, library, function, result, arguments)
            kernel = context.call_conv.get_function_type(result, arguments)
            passed = ["ptr" if kind.is_pointer else str(kind) for kind in kernel.args]
            entries.add(declaring.name(function), symbol, passed, result, arguments)
        library.add_llvm_module(parse_assembly(entries.module(digest)))
        library.finalize()
    bitcode: bytes = library.emit_bitcode()
    return bitcode


def compiled_type(annotation: object) -> Any:
    """Return what an argument or a result that is annotated so is compiled as."""
    if get_origin(annotation) is None:
        return _SCALARS[annotation]
    lies = get_args(annotation)[1]
    if isinstance(lies, Array):
        element = getattr(_types, lies.element if lies.element != "bool" else "boolean")
        return _types.Array(element, lies.dimensions, "C", readonly=not lies.writable)
    return _SCALARS[lies]


def _import_kernels() -> None:
    """Import all modules of `records`, and have numba know what kernels call."""
    folder = Path(penstock.records.__path__[0])
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if path.name != "__init__.py" and path.stem != "arrow":
            import_module(".".join(("penstock.records", *parts)))
    intrinsics.register()
    for function in declaring.HELPERS:
        # Whatever its size: a call would pass each array in seven arguments or more.
        _extending.register_jitable(forceinline=True)(function)
    for function in declaring.KERNELS:
        _extending.register_jitable(function)


def _signature(function: Callable[..., Any]) -> tuple[Any, list[Any]]:
    annotations = get_type_hints(function, include_extras=True)
    result = compiled_type(annotations.pop("return"))
    return result, list(map(compiled_type, annotations.values()))


def _compile(
    context: Any, library: Any, function: Callable[..., Any], result: Any, arguments: list[Any]
) -> str:
    """Add a kernel to the library; returns its symbol there."""
    flags = _compiler.Flags()
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.nrt = False
    flags.error_model = "numpy"
    with _targetconfig.ConfigStack().enter(flags):
        compiled = _compiler.compile_extra(
            _cpu.typing_context, context, function, arguments, result, flags, {}, library=library
        )
    symbol: str = compiled.fndesc.llvm_func_name
    return symbol
