"""`penstock serve` on an operating system that is slow, fails and forgets on command.

    python faulty_serve.py CONTROL_DESCRIPTOR JOURNAL BUG penstock's own arguments

BUG is the name of one of `seeded_bugs.py`, or "none".

What Python asks the operating system about files below the data folder goes through FaultySystem,
whichever part of the broker asks. SQLite's own calls do not. Commands are lines of JSON over the
control socket, each answered by a line: `{"rules": [...]}` replaces the rules, `{"cold": true}`
empties the page cache, `{"clock": 3600}` sets the clock on by so many seconds, `{"reset": true}`
begins to count anew, and every answer has the figures that `Disk.figures` describes.
"""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK = 64 * 1024
CHANGING = ("pwritev", "pwrite", "write", "ftruncate", "truncate")
SYNCING = ("fdatasync", "fsync")
READING = ("pread", "preadv", "sendfile")
NAMING = ("open", "mkdir", "rename", "replace", "unlink", "scandir")


@dataclass
class Rule:
    """What happens to calls of these names on paths that match, `times` times or for ever."""

    calls: list[str]
    path: str = "*"
    delay_ms: float = 0
    error: str = ""
    times: int | None = None
    half: bool = False
    """Let half of the bytes through first, as a disk does that is becoming full."""

    def takes(self, call: str, path: str) -> bool:
        return self.times != 0 and call in self.calls and fnmatch.fnmatch(path, self.path)


class FaultySystem:
    """Stands in for the functions of `os`; knows the files of the data folder by descriptor."""

    def __init__(self, data_folder: str, journal: str) -> None:
        self._folder = f"{Path(data_folder).absolute()}/"
        self._journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._real: dict[str, Callable[..., Any]] = {}
        self._paths: dict[int, str] = {}
        self._warm: dict[str, set[int]] = {}
        self._rules: list[Rule] = []
        self._loop_thread = threading.get_ident()
        self._waits: dict[str, list[float]] = {}
        self._failures: dict[str, int] = {}
        self._clock_seconds = 0.0

    def install(self) -> None:
        real_time, real_time_ns = time.time, time.time_ns
        time.time = lambda: real_time() + self._clock_seconds
        time.time_ns = lambda: real_time_ns() + int(self._clock_seconds * 1e9)
        for name in (*CHANGING, *SYNCING, *READING, *NAMING, "close"):
            self._real[name] = getattr(os, name)
            setattr(os, name, getattr(self, f"_{name}"))

    def obey(self, control: socket.socket) -> None:
        """Serve commands until the other side is gone."""
        with control.makefile("rw") as lines:
            for line in lines:
                command = json.loads(line)
                if "rules" in command:
                    self._rules = [Rule(**rule) for rule in command["rules"]]
                if command.get("cold"):
                    self._warm = {}
                if "clock" in command:
                    self._clock_seconds = command["clock"]
                if command.get("reset"):
                    self._waits, self._failures = {}, {}
                lines.write(json.dumps(self._figures()) + "\n")
                lines.flush()

    def _figures(self) -> dict[str, object]:
        waits = {
            call: {"count": len(all_), "seconds": sum(all_)} for call, all_ in self._waits.items()
        }
        return {"loop_waits": waits, "failures": self._failures}

    # What calls go through.

    def _before(self, call: str, path: str) -> Rule | None:
        """Wait, or raise, as the first rule that takes the call says; return a rule of a half."""
        for rule in self._rules:
            if rule.takes(call, path):
                if rule.times is not None:
                    rule.times -= 1
                self._wait(call, rule.delay_ms / 1000)
                if rule.half:
                    rule.half = False
                    return rule
                if rule.error:
                    self._failures[call] = self._failures.get(call, 0) + 1
                    number = getattr(errno, rule.error)
                    raise OSError(number, os.strerror(number), path)
        return None

    def _wait(self, call: str, seconds: float) -> None:
        if not seconds:
            return
        if threading.get_ident() == self._loop_thread:
            self._waits.setdefault(call, []).append(seconds)
        time.sleep(seconds)

    def _path_of(self, descriptor: object) -> str | None:
        return self._paths.get(descriptor) if isinstance(descriptor, int) else None

    def _opened_elsewhere(self, descriptor: int) -> str | None:
        """The path of a file that the builtin `open` made."""
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        return path if self._is_ours(path) else None

    def _is_ours(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self._folder)

    def _note(self, line: str) -> None:
        self._real["write"](self._journal, line.encode() + b"\n")

    # Names.

    def _open(self, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if not self._is_ours(path):
            return int(self._real["open"](path, flags, *rest, **named))
        path = os.fspath(path)
        self._before("open", path)
        descriptor = int(self._real["open"](path, flags, *rest, **named))
        self._paths[descriptor] = path
        return descriptor

    def _close(self, descriptor: int) -> None:
        self._paths.pop(descriptor, None)
        self._real["close"](descriptor)

    def _named(self, call: str, path: Any, *rest: Any, **named: Any) -> Any:
        if self._is_ours(path):
            self._before(call, os.fspath(path))
        return self._real[call](path, *rest, **named)

    def _mkdir(self, *given: Any, **named: Any) -> None:
        self._named("mkdir", *given, **named)

    def _unlink(self, *given: Any, **named: Any) -> None:
        self._named("unlink", *given, **named)

    def _scandir(self, path: Any = ".") -> Any:
        return self._named("scandir", path)

    def _rename(self, source: Any, target: Any, **named: Any) -> None:
        self._moved("rename", source, target, **named)

    def _replace(self, source: Any, target: Any, **named: Any) -> None:
        self._moved("replace", source, target, **named)

    def _moved(self, call: str, source: Any, target: Any, **named: Any) -> None:
        self._named(call, source, target, **named)
        if self._is_ours(source):
            self._note(f"moved {os.fspath(source)}\t{os.fspath(target)}")

    # Contents.

    def _pread(self, descriptor: int, size: int, position: int) -> bytes:
        self._read("pread", descriptor, position, size)
        return bytes(self._real["pread"](descriptor, size, position))

    def _preadv(self, descriptor: int, buffers: Any, position: int, flags: int = 0) -> int:
        size = sum(map(len, buffers))
        path = self._path_of(descriptor)
        if path is not None and flags & os.RWF_NOWAIT:
            if self._is_slow("preadv", path) and self._cold_blocks(path, position, size):
                raise BlockingIOError(errno.EAGAIN, "not in the page cache", path)
        else:
            self._read("preadv", descriptor, position, size)
        return int(self._real["preadv"](descriptor, buffers, position, flags))

    def _sendfile(self, out: int, descriptor: int, position: int, size: int, **named: Any) -> int:
        self._read("sendfile", descriptor, position, size)
        return int(self._real["sendfile"](out, descriptor, position, size, **named))

    def _read(self, call: str, descriptor: int, position: int, size: int) -> None:
        path = self._path_of(descriptor)
        if path is None:
            return
        cold = self._cold_blocks(path, position, size)
        if cold or not self._is_slow(call, path):
            self._before(call, path)
            self._warm.setdefault(path, set()).update(cold)

    def _is_slow(self, call: str, path: str) -> bool:
        return any(rule.delay_ms and rule.takes(call, path) for rule in self._rules)

    def _cold_blocks(self, path: str, position: int, size: int) -> set[int]:
        last = max(position, min(position + size, _size_of(path)) - 1)
        blocks = set(range(position // BLOCK, last // BLOCK + 1))
        return blocks - self._warm.get(path, set())

    def _pwritev(self, descriptor: int, buffers: Any, position: int, flags: int = 0) -> int:
        path = self._path_of(descriptor)
        if path is not None:
            if flags & os.RWF_NOWAIT and self._is_slow("pwritev", path):
                raise BlockingIOError(errno.EAGAIN, "the disk is busy", path)
            if self._before("pwritev", path):
                data = b"".join(buffers)
                return int(self._real["pwrite"](descriptor, data[: len(data) // 2], position))
            size = sum(map(len, buffers))
            blocks = range(position // BLOCK, (position + size) // BLOCK + 1)
            self._warm.setdefault(path, set()).update(blocks)
        return int(self._real["pwritev"](descriptor, buffers, position, flags))

    def _pwrite(self, descriptor: int, data: Any, position: int) -> int:
        if self._path_of(descriptor) is None:
            return int(self._real["pwrite"](descriptor, data, position))
        return self._pwritev(descriptor, [data], position)

    def _write(self, descriptor: int, data: Any) -> int:
        path = self._path_of(descriptor)
        if path is not None and self._before("write", path):
            data = data[: len(data) // 2]
        return int(self._real["write"](descriptor, data))

    def _ftruncate(self, descriptor: int, size: int) -> None:
        path = self._path_of(descriptor)
        if path is not None:
            self._before("ftruncate", path)
        self._real["ftruncate"](descriptor, size)

    def _truncate(self, target: Any, size: int) -> None:
        path = self._path_of(target) or (os.fspath(target) if self._is_ours(target) else None)
        if path is not None:
            self._before("truncate", path)
        self._real["truncate"](target, size)

    def _fdatasync(self, descriptor: int) -> None:
        self._sync("fdatasync", descriptor)

    def _fsync(self, descriptor: int) -> None:
        self._sync("fsync", descriptor)

    def _sync(self, call: str, descriptor: Any) -> None:
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        path = self._path_of(number) or self._opened_elsewhere(number)
        size = os.fstat(number).st_size  # What is written while it runs may not be covered.
        if path is not None:
            self._before(call, path)
        self._real[call](number)
        if path is not None:
            self._note(f"synced {size}\t{path}")


def _size_of(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _data_folder(arguments: list[str]) -> str:
    return arguments[arguments.index("--data-folder") + 1]


def main() -> None:
    control, journal, bug, *arguments = sys.argv[1:]
    system = FaultySystem(_data_folder(arguments), journal)
    system.install()
    connection = socket.socket(fileno=int(control))
    threading.Thread(target=system.obey, args=(connection,), daemon=True).start()
    if bug != "none":
        from seeded_bugs import BUGS

        BUGS[bug]()
    sys.argv = ["penstock", *arguments]
    from penstock.cli import main as penstock

    penstock()


if __name__ == "__main__":
    main()
