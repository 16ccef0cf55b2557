"""What Spark carries to its workers, which says what to install where Penstock is missing there.

A pickled object names its class by module, and a worker whose Python lacks that module fails with
nothing but its name. So what unpickles a reader or a writer travels with its own code.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from pyspark import cloudpickle

from penstock import __version__


class Carried:
    """An object that a driver makes and workers use."""

    def __reduce__(self) -> tuple[Any, ...]:
        content = cloudpickle.dumps((type(self), self.__getstate__()))  # type: ignore[no-untyped-call]
        return _travelling(_unpacked), (content, __version__)


class CarriedFunction(Carried):
    """A function or method of this package that workers call."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, argument: Any) -> Any:
        return self._function(argument)


def _unpacked(content: bytes, version: str) -> Any:
    """Return the object. All that this needs it imports, for it runs where this module may not be.

    Raises ModuleNotFoundError, ImportError where another version is there.
    """
    import pickle  # noqa: PLC0415
    import socket  # noqa: PLC0415
    import sys  # noqa: PLC0415

    where = f"the Python of Spark's worker on {socket.gethostname()}, {sys.executable}"
    advice = (
        f"Install it there: {sys.executable} -m pip install 'penstock-broker[spark]=={version}'; "
        "or have PYSPARK_PYTHON name a Python that has it on every machine of the cluster"
    )
    try:
        from penstock import __version__ as installed  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "penstock":
            raise
        raise ModuleNotFoundError(f"Penstock is missing in {where}. {advice}") from None
    if installed != version:
        raise ImportError(
            f"Penstock {installed} is in {where}, and {version} on the driver. {advice}"
        )
    kind, state = pickle.loads(content)  # noqa: S301
    from penstock.allocator import keep_freed_memory  # noqa: PLC0415
    from penstock.limits import MIB  # noqa: PLC0415
    from penstock.pipeline.garbage import spare_modules  # noqa: PLC0415

    spare_modules()
    # Each batch of rows is made in megabytes that the one before has freed.
    keep_freed_memory(1024 * MIB)
    made = kind.__new__(kind)
    made.__dict__.update(state)
    return made


def _travelling(function: Callable[..., Any]) -> FunctionType:
    """Return a function that cloudpickle packs with its code, as it does those of a program."""
    made = FunctionType(function.__code__, {}, function.__name__)
    made.__module__ = "__main__"
    return made
