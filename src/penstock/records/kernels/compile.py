"""Compile every kernel into the cache: `python -m penstock.records.kernels.compile`."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from penstock.records.kernels.cache import compiling_alone, is_complete, mark_complete

_MODULES: Final = ("conversion", "iggy.cut")


def main() -> None:
    """Importing a module compiles its kernels, or finds them in the cache.

    Several brokers that start on a fresh machine have it done once: the others wait and find it.
    """
    with compiling_alone():
        if is_complete():
            return
        for module in _MODULES:
            import_module(f"penstock.records.{module}")
        mark_complete()


if __name__ == "__main__":
    main()
