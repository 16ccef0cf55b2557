"""Inputs that are changed at random and kept where they reach lines that none reached before.

An input is a list of frames (or files, or batches): what a target feeds to the code under test. The
corpus is a folder of such inputs, one file each, a line of hexadecimal digits a frame, so that a
run begins where the last one ended.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, TypeAlias

import penstock

Frames: TypeAlias = list[bytes]
Target: TypeAlias = Callable[[Frames], Awaitable[None]]
"""Runs one input, and raises what is a defect."""

CORPUS: Final = Path(os.environ.get("PENSTOCK_FUZZ_CORPUS", Path(__file__).parents[2] / ".fuzz"))
"""Kept between runs, and no part of the repository."""

_PACKAGE: Final = str(Path(penstock.__file__).parent)
_LARGEST: Final = 1 << 18
"""Bytes of the largest input: what is repeated over and over grows no further."""
_NUMBERS: Final = tuple(
    sorted(
        sign * ((1 << bits) + more) for bits in range(64) for more in (-1, 0, 1) for sign in (1, -1)
    )
)
_TRACED: Final = 8
"""Of so many inputs one is watched for new lines, which makes it several times slower."""
_SLOWEST: Final = 1.0
"""Seconds of the processor for one input, and as much again for each 64 KiB."""


class Coverage:
    """The lines of the package that have run. A function all of whose lines have costs a call."""

    def __init__(self) -> None:
        self.lines = 0
        self._left: dict[CodeType, set[int]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count lines that run in this thread for the first time."""
        sys.settrace(self._entered)
        try:
            yield
        finally:
            sys.settrace(None)

    def _entered(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        left = self._left.get(code)
        if left is None:
            left = self._left[code] = _lines(code)
        return self._ran if left else None

    def _ran(self, frame: FrameType, event: str, _argument: Any) -> Any:
        left = self._left[frame.f_code]
        if event == "line" and frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self.lines += 1
        return self._ran if left else None


def _lines(code: CodeType) -> set[int]:
    if not code.co_filename.startswith(_PACKAGE):
        return set()
    return {line for _, _, line in code.co_lines() if line is not None} - {code.co_firstlineno}


class Mutator:
    """Changes inputs; the same seed makes the same changes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def mutate(self, frames: Frames, others: Sequence[Frames]) -> Frames:
        """Return a changed copy; parts may come from one of `others`."""
        changed = list(frames)
        for _ in range(self.random.choice((1, 1, 1, 2, 4, 8))):
            if self.random.random() < 0.2:
                self._rearrange(changed, self.random.choice(others))
            elif changed:
                at = self.random.randrange(len(changed))
                changed[at] = self._change(bytearray(changed[at]))
        while _size(changed) > _LARGEST:
            changed.pop()
        return changed or list(frames)

    def _rearrange(self, frames: Frames, other: Frames) -> None:
        """Repeat, drop, swap or interleave frames."""
        random = self.random
        at, to = random.randrange(len(frames) + 1), random.randrange(len(frames) + 1)
        way = random.randrange(4)
        if way == 0 and frames:
            frames[at:at] = [random.choice(frames)] * random.choice((1, 2, 16))
        elif way == 1:
            del frames[min(at, to) : max(at, to)]
        elif way == 2 and len(frames) > 1:
            frames.insert(min(to, len(frames) - 1), frames.pop(at - 1))
        elif other:
            frames.insert(at, random.choice(other))

    def _change(self, frame: bytearray) -> bytes:
        """Flip bits, lie about a number, cut, repeat or move bytes."""
        random = self.random
        if not frame:
            return random.randbytes(random.choice((1, 4, 64)))
        at, size = random.randrange(len(frame)), random.choice((1, 1, 2, 4, 8, 32))
        way = random.randrange(8)
        if way == 0:
            frame[at] ^= 1 << random.randrange(8)
        elif way == 1:
            frame[at : at + size] = random.randbytes(size)
        elif way in (2, 3):
            width = random.choice((1, 2, 4, 8))
            number = random.choice(_NUMBERS) & ((1 << (8 * width)) - 1)
            frame[at : at + width] = number.to_bytes(width, random.choice(("big", "little")))
        elif way == 4:
            del frame[at : at + size]
        elif way == 5:
            del frame[at:]
        elif way == 6:
            frame[at:at] = bytes(frame[at : at + size]) * random.choice((1, 2, 64))
        else:
            to = random.randrange(len(frame))
            frame[to : to + size] = frame[at : at + size]
        return bytes(frame)


class Report(NamedTuple):
    """What a run did: inputs that were run, lines that they reached, inputs that were kept."""

    executions: int
    lines: int
    kept: int
    slowest: float


class Fuzzer:
    """Runs a target over a corpus. `keep` says whether what is found new goes to the folder."""

    def __init__(self, name: str, seeds: Sequence[Frames], *, seed: int, keep: bool) -> None:
        self._folder = CORPUS / name
        self._keep = keep
        self.inputs = [*seeds, *self._read()]
        self.mutator = Mutator(seed)
        self.coverage = Coverage()

    async def run(self, target: Target, *, executions: int, seconds: float) -> Report:
        """Run the corpus once and then changed inputs, up to a number and for a time.

        Raises AssertionError with the input that shows a defect.
        """
        slowest, kept, done = 0.0, 0, 0
        end = time.monotonic() + seconds
        known = len(self.inputs)
        while done < executions and time.monotonic() < end:
            if done < known:
                frames = self.inputs[done]
            else:
                frames = self.mutator.mutate(self._next(), self.inputs)
            lines = self.coverage.lines
            is_traced = done < known or done % _TRACED == 0
            slowest = max(slowest, await self._execute(target, frames, traced=is_traced))
            done += 1
            if self.coverage.lines > lines and done > known:
                self.inputs.append(frames)
                self._write(frames)
                kept += 1
        return Report(done, self.coverage.lines, kept, slowest)

    def _next(self) -> Frames:
        """Return an input to change: any, or the shorter one of two, for short ones cost less."""
        random = self.mutator.random
        chosen = random.choice(self.inputs)
        return (
            chosen if random.random() < 0.5 else min(chosen, random.choice(self.inputs), key=_size)
        )

    async def _execute(self, target: Target, frames: Frames, *, traced: bool) -> float:
        before = time.thread_time()
        try:
            with self.coverage.watching() if traced else nullcontext():
                await target(frames)
        except Exception as error:
            raise AssertionError(f"{error!r} with the input\n{_text(frames)}") from error
        taken = time.thread_time() - before
        allowed = _SLOWEST * (1 + _size(frames) / 65_536)
        assert taken < allowed, f"{taken:.1f} s with the input\n{_text(frames)}"
        return taken

    def _read(self) -> list[Frames]:
        files = sorted(self._folder.glob("*.hex")) if self._keep else []
        return [[bytes.fromhex(line) for line in file.read_text().splitlines()] for file in files]

    def _write(self, frames: Frames) -> None:
        if self._keep:
            self._folder.mkdir(parents=True, exist_ok=True)
            text = _text(frames)
            name = hashlib.sha256(text.encode()).hexdigest()[:16]
            (self._folder / f"{name}.hex").write_text(text)


def _size(frames: Frames) -> int:
    return sum(map(len, frames))


def _text(frames: Frames) -> str:
    return "\n".join(frame.hex() for frame in frames)
