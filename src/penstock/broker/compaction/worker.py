"""The process that compacts: it does one step after another that `process` asks it for.

It reads segments and writes what is left of them beside them, as the thread of a small compaction
does. The broker puts it in place; so whenever this process dies, the old segments are there.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import platform
import resource
import signal
import struct
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from penstock.allocator import keep_freed_memory
from penstock.broker.compaction.cleaner import Cleaner, Job, Throttle
from penstock.broker.compaction.process import Cleaned, Failure
from penstock.limits import COMPACTION_PROCESS_BYTES
from penstock.log.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log.interface import Rewriting, RewritingPlan

_NICENESS: Final = 10
_SLICE_NANOSECONDS: Final = 100_000
"""The shortest that Linux grants. Of its usual one, 3 ms, the broker would await the end."""
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
"""Linux's number of the call, which the C library may lack, by the kind of processor."""
_SCHED_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
_PR_SET_PDEATHSIG: Final = 1


class Worker:
    """Its methods are what can be asked for. They raise as `Cleaner` does."""

    def __init__(self) -> None:
        self._rewritings: Sequence[Rewriting] = ()
        self._cleaner: Cleaner | None = None

    def begin(self, job: Job, plans: Sequence[RewritingPlan], bytes_per_second: int) -> None:
        """Take up one pass; what was left of another one is forgotten."""
        self._cleaner = None
        self._rewritings = [plan.begin() for plan in plans]
        job = job._replace(rewritings=self._rewritings)
        self._cleaner = Cleaner(job, Throttle(bytes_per_second))

    def map_keys(self) -> int:
        """Do as `Cleaner.map_keys`."""
        return self._begun.map_keys()

    def clean(self, number: int) -> Cleaned:
        """Do as `Cleaner.clean` with one of the rewritings."""
        rewriting = self._rewritings[number]
        try:
            is_needed = self._begun.clean(rewriting)
        except BaseException:
            rewriting.discard()
            raise
        tally = self._begun.tally
        if is_needed:
            return Cleaned(rewriting.sealed, tally)
        rewriting.discard()
        return Cleaned(None, tally)

    def look_over(self, number: int) -> bytes:
        """Do as `Cleaner.look_over` with one of the rewritings."""
        return self._begun.look_over(self._rewritings[number])

    @property
    def _begun(self) -> Cleaner:
        assert self._cleaner is not None, "a pass is begun first"
        return self._cleaner


def main(parent: int) -> None:
    """Answer until standard input ends, or the process does that started this one."""
    _end_with(parent)
    _stand_back()
    if sys.platform == "linux":
        most = int(COMPACTION_PROCESS_BYTES)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    keep_freed_memory(int(COMPACTION_PROCESS_BYTES))
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: SimpleQueue[tuple[str, tuple[Any, ...]]] = SimpleQueue()
    threading.Thread(target=_take, args=(sys.stdin.buffer, requests), daemon=True).start()
    worker = Worker()
    while True:
        method, arguments = requests.get()
        pickle.dump(_answer(worker, method, arguments), replies)
        replies.flush()


def _answer(worker: Worker, method: str, arguments: tuple[Any, ...]) -> object:
    try:
        return getattr(worker, method)(*arguments)
    except LogError as error:
        return Failure(LogError(str(error)))
    except OSError as error:
        return Failure(OSError(error.errno, error.strerror, error.filename))
    except MemoryError:
        return Failure(LogError(f"it takes more than {COMPACTION_PROCESS_BYTES} bytes of memory"))
    except Exception:
        return Failure(RuntimeError(traceback.format_exc()))


def _take(stream: BinaryIO, requests: SimpleQueue[tuple[str, tuple[Any, ...]]]) -> None:
    """Read what is asked for, so that the end of it is noticed in the middle of work."""
    try:
        while True:
            requests.put(pickle.load(stream))  # noqa: S301 (of the process that started this one)
    except EOFError:
        os._exit(0)


def _stand_back() -> None:
    """Take little of a busy machine, and give a core back at once.

    Linux before 6.12 has one slice for all, and takes no notice of the wish.
    """
    os.nice(_NICENESS)
    call = _SCHED_SETATTR.get(platform.machine()) if sys.platform == "linux" else None
    if call is None:
        return
    size = _SCHED_ATTRIBUTES.size
    wish = _SCHED_ATTRIBUTES.pack(size, 0, 0, _NICENESS, 0, _SLICE_NANOSECONDS, 0, 0)
    ctypes.CDLL(None).syscall(call, 0, wish, 0)


def _end_with(parent: int) -> None:
    """Die when the broker does: the next one may write the same files."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
