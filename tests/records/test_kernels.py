"""Kernels: what they take, and that each level of processor and the interpreter agree on them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import types

from kernel_compiler.translation import compiled_type
from penstock import records
from penstock.log.header import Magic
from penstock.records import MalformedBatchError, MessageSetMagic, arena, batch_headers
from penstock.records.iggy.batch import stamp, stamp_iggy_batch, verify_iggy_batch
from penstock.records.iggy.cut import cut_iggy_batch
from penstock.records.kernels import declaring, library
from penstock.records.kernels.arguments import TableOut, Word
from penstock.records.kernels.xxh3 import xxh3_64
from penstock.records.message_sets.decode import batch_of_messages
from penstock.records.message_sets.faults import MessageSetError
from stored_batches import (
    TIME,
    Record,
    entry,
    iggy_batch,
    iggy_body,
    join,
    kafka_batch,
    metadata,
    pulsar_batch,
)

BYTES = np.zeros(61, np.uint8)
READ_ONLY = np.frombuffer(bytes(61), np.uint8)
NUMBERS = np.zeros(3, np.int64)

for _module in ("conversion", "iggy.cut", "message_sets.decode"):
    import_module(f"penstock.records.{_module}")


@contextmanager
def waiting_for_the_interpreter() -> Iterator[list[bool]]:
    """Yield what another thread changes once it may run, which nobody forces this one to allow."""
    has_run, start = [False], threading.Lock()

    def run() -> None:
        with start:
            has_run[0] = True

    start.acquire()
    thread = threading.Thread(target=run)
    interval = sys.getswitchinterval()
    # Before the thread is there: it would ask for the interpreter after the time that it knew.
    sys.setswitchinterval(600)
    try:
        thread.start()
        start.release()
        yield has_run
    finally:
        sys.setswitchinterval(interval)
        thread.join()


class TestWhoRunsMeanwhile:
    def test_nobody_while_little_is_done(self) -> None:
        with waiting_for_the_interpreter() as has_run:
            until = time.monotonic() + 0.2
            while time.monotonic() < until:
                xxh3_64(BYTES, 0, len(BYTES))
            assert not has_run[0]

    def test_others_while_much_is_done(self) -> None:
        much = np.zeros(1 << 20, np.uint8)
        with waiting_for_the_interpreter() as has_run:
            until = time.monotonic() + 60
            while not has_run[0] and time.monotonic() < until:
                xxh3_64(much, 0, len(much))
            assert has_run[0]


class OfItsOwn(np.ndarray):
    """Might lie anywhere."""


class TestWhatIsTaken:
    @pytest.mark.parametrize(
        "wrong",
        [
            bytes(61),
            bytearray(61),
            None,
            [1, 2],
            np.zeros(61, np.int32),
            np.zeros(61, np.int8),
            np.zeros(61, np.bool_),
            np.zeros((61, 1), np.uint8),
            np.zeros(122, np.uint8)[::2],
            np.zeros(61, np.uint8).view(OfItsOwn),
        ],
    )
    def test_other_than_bytes_is_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"count_batches\(\): argument 1 is no array"):
            batch_headers.count_batches(wrong)

    @pytest.mark.parametrize(
        "wrong", [np.zeros(3, ">i8"), np.zeros(3, np.float64), np.zeros(3, np.uint64), BYTES]
    )
    def test_other_than_numbers_is_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"copy_spans\(\): argument 2 "):
            arena.copy_spans(READ_ONLY, wrong, NUMBERS, 0, NUMBERS.copy(), BYTES.copy())

    def test_an_array_that_is_not_aligned_is_refused(self) -> None:
        askew = np.zeros(25, np.uint8)[1:].view(np.int64)
        assert not askew.flags.aligned
        with pytest.raises(TypeError):
            arena.copy_spans(READ_ONLY, askew, NUMBERS, 0, NUMBERS.copy(), BYTES.copy())

    def test_what_is_written_to_must_be_writable(self) -> None:
        assert batch_headers.count_batches(READ_ONLY) == -1
        with pytest.raises(TypeError, match="argument 6"):
            arena.copy_spans(READ_ONLY, NUMBERS, NUMBERS, 0, NUMBERS.copy(), READ_ONLY)

    def test_a_table_is_no_row(self) -> None:
        with pytest.raises(TypeError):
            batch_headers.fill_batches(BYTES, NUMBERS)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            batch_headers.fill_batches(BYTES, np.zeros((9, 9), np.int64).T)

    def test_other_than_a_number_is_refused(self) -> None:
        with pytest.raises(TypeError):
            xxh3_64(BYTES, "3", 3)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            xxh3_64(BYTES, 0.5, 3)  # type: ignore[arg-type]
        with pytest.raises(OverflowError):
            xxh3_64(BYTES, 1 << 63, 3)

    def test_minus_one_is_a_number(self) -> None:
        with pytest.raises(TypeError, match="argument 5"):
            stamp(BYTES, -1, -1, -1, NUMBERS)  # type: ignore[arg-type]

    def test_too_few_or_too_many_arguments_are_refused(self) -> None:
        wrong: Any = xxh3_64
        for arguments in ((), (BYTES, 0), (BYTES, 0, 0, 0)):
            with pytest.raises(TypeError, match=f"takes 3 arguments, not {len(arguments)}"):
                wrong(*arguments)
        with pytest.raises(TypeError):
            wrong(BYTES, start=0, size=0)


def test_the_annotations_are_the_compiled_signature() -> None:
    assert compiled_type(int) == types.int64
    assert compiled_type(Word) == types.uint64
    assert compiled_type(TableOut) == types.Array(types.int64, 2, "C")
    with pytest.raises(KeyError):
        compiled_type(float)


def test_every_kernel_is_compiled() -> None:
    for function in declaring.KERNELS:
        running = getattr(sys.modules[function.__module__], function.__name__)
        assert type(running) is type(len), f"{declaring.name(function)} is interpreted"


def compiled_for(level: str) -> Callable[[Callable[..., Any]], Any]:
    loaded = library.load(level)
    return lambda function: getattr(loaded, declaring.name(function))


@contextmanager
def kernels_are(chosen: Callable[[Callable[..., Any]], Any]) -> Iterator[None]:
    """Put what is chosen for each kernel in its place, in every module that has it."""
    modules = [module for name, module in sys.modules.items() if name.startswith("penstock.")]
    running = {
        getattr(sys.modules[function.__module__], function.__name__): function
        for function in declaring.KERNELS
    }
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for module in modules:
            for name, value in list(vars(module).items()):
                if type(value) is type(len) and value in running:
                    patch.setattr(module, name, chosen(running[value]))
        yield


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except (MalformedBatchError, MessageSetError) as error:
        return type(error), str(error)


def everything(stored: bytes, target: Magic) -> list[Any]:
    """What comes of some stored batches wherever kernels have a say."""
    made = [outcome(lambda: join(records.convert(stored, target)))]
    for magic in MessageSetMagic:
        sets = outcome(lambda magic=magic: join(records.convert(stored, magic)))
        made.append(sets)
        if isinstance(sets, bytes):
            # The header in front is damage enough, where there is no other.
            made += [
                outcome(lambda data=data: bytes(batch_of_messages(data)))
                for data in (sets[61:], sets)
            ]
    body = bytearray(stored[61:])
    if stored[16] == Magic.IGGY:
        made.append(outcome(lambda: verify_iggy_batch(body)))
        if not isinstance(made[-1][0], type):
            stamp_iggy_batch(body, 3, 1 << 40, TIME)
            run = cut_iggy_batch(body, 1, 2)
            made += [bytes(body), bytes(run.header), run[1:]]
    return made


NAMES = st.text(max_size=12).map(str.encode) | st.text(min_size=250, max_size=300).map(str.encode)
CONTENTS = st.binary(max_size=20) | st.binary(min_size=250, max_size=1_200)
RECORDS = st.lists(
    st.builds(
        Record,
        value=st.none() | CONTENTS,
        key=st.none() | CONTENTS,
        headers=st.lists(st.tuples(NAMES, st.none() | CONTENTS), max_size=3).map(tuple),
        time=st.integers(0, 1 << 41).map(lambda number: number * 1000),
    ),
    min_size=1,
    max_size=4,
)
OF_IGGY = st.lists(
    st.builds(
        Record,
        value=st.binary(min_size=1, max_size=1_200),
        key=st.none() | st.binary(min_size=1, max_size=255),
        headers=st.just(((b"name", b"value"),)) | st.just(()),
        time=st.integers(TIME, TIME + 4_000_000_000),
    ),
    min_size=1,
    max_size=4,
)


def of_pulsar(written: list[Record]) -> bytes:
    single = entry(metadata(partition_key="key", sequence_id=7), written[0].value or b"")
    return pulsar_batch(single)


STORED = st.one_of(
    RECORDS.map(kafka_batch),
    RECORDS.map(of_pulsar),
    OF_IGGY.map(lambda written: iggy_batch(iggy_body(written), count=len(written))),
)
HERE = library.processor_features()
OTHERS = [
    *(level.name for level in library.levels() if level.features <= HERE),
    "interpreted",
]


@pytest.mark.parametrize("other", OTHERS)
@given(
    stored=STORED,
    target=st.sampled_from(Magic),
    damage=st.none() | st.tuples(st.integers(0), st.integers(1, 255)),
)
def test_all_levels_agree(
    other: str, stored: bytes, target: Magic, damage: tuple[int, int] | None
) -> None:
    if damage is not None:
        place, flipped = damage
        place = 61 + place % (len(stored) - 61)
        stored = stored[:place] + bytes([stored[place] ^ flipped]) + stored[place + 1 :]
    expected = everything(stored, target)
    chosen = compiled_for(other) if other != "interpreted" else lambda function: function
    with kernels_are(chosen):
        assert everything(stored, target) == expected
