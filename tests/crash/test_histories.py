"""The checker of histories finds each kind of wrong, and nothing where all is well."""

from __future__ import annotations

import dataclasses

import pytest

from histories import History, Kind, find_anomalies, parse

WRITTEN = """\
invoked - - a
invoked - - b
ok 0 0 a
ok 0 1 b
invoked - - c
"""
TRUE = "read 0 0 a\nread 0 1 b\n"


def history(
    written: str = WRITTEN, read: str = TRUE, truth: str = TRUE, **options: object
) -> History:
    return History(
        writers={"writer": parse(written)},
        readers={"reader": parse(read)},
        truths={"kafka": parse(truth)},
        **options,  # type: ignore[arg-type]  # any
    )


def kinds(found: History) -> set[Kind]:
    return {anomaly.kind for anomaly in find_anomalies(found)}


@pytest.mark.parametrize(
    "truth",
    [
        TRUE,
        TRUE + "read 0 2 c\n",  # An unknown write may be there,
        TRUE + "read 0 2 c\nread 0 3 c\n",  # and twice, where its writer tries again by itself.
        TRUE + "read 1 0 c\n",
        TRUE + "read 0 9 c\n",  # Offsets may have gaps.
    ],
)
def test_what_a_correct_log_may_do_is_no_anomaly(truth: str) -> None:
    assert kinds(history(truth=truth, read=TRUE)) == set()


def test_what_was_sent_again_may_be_anywhere() -> None:
    """Its writer is told that it is there, and not where."""
    found = history(WRITTEN + "ok 0 - c\n", truth=TRUE + "read 0 2 c\n", idempotent={"writer"})
    assert kinds(found) == set()


@pytest.mark.parametrize("read", ["", "read 0 1 b\n", "read 0 0 a\n", TRUE + "read 0 2 "])
def test_a_reader_may_begin_and_end_anywhere(read: str) -> None:
    assert kinds(history(read=read)) == set()


WRONG = {
    "lost": (history(truth="read 0 0 a\n", read=""), Kind.LOST),
    "moved": (history(truth="read 0 0 a\nread 0 2 b\n", read=""), Kind.LOST),
    "lost, and nobody said where it was": (history(WRITTEN + "ok 0 - c\n"), Kind.LOST),
    "twice": (
        history(truth=TRUE + "read 0 2 c\nread 0 3 c\n", idempotent={"writer"}),
        Kind.DUPLICATED,
    ),
    "acknowledged, and twice": (
        history(truth=TRUE + "read 0 2 b\n", idempotent={"writer"}),
        Kind.DUPLICATED,
    ),
    "later before earlier": (
        history(
            "invoked - - a\ninvoked - - b\nok 0 1 a\nok 0 0 b\n", "", "read 0 0 b\nread 0 1 a\n"
        ),
        Kind.REORDERED,
    ),
    "refused and there": (
        history(WRITTEN + "refused - - c\n", truth=TRUE + "read 0 2 c\n"),
        Kind.RESURRECTED,
    ),
    "from nowhere": (history(truth=TRUE + "read 0 2 d\n"), Kind.INVENTED),
    "read, then another": (
        history(read=TRUE + "read 0 2 c\n", truth=TRUE + "read 0 2 d\n"),
        Kind.REUSED,
    ),
    "acknowledged, then another": (
        history(WRITTEN + "ok 0 2 c\ninvoked - - d\nok 0 2 d\n", truth=TRUE + "read 0 2 d\n"),
        Kind.REUSED,
    ),
    "read and gone": (history(read=TRUE + "read 0 2 c\n"), Kind.DIRTY),
    "back": (history(read="read 0 1 b\nread 0 0 a\n"), Kind.BACKWARDS),
    "again": (history(read=TRUE + "read 0 1 b\n"), Kind.BACKWARDS),
    "past one": (
        history(read="read 0 0 a\nread 0 2 c\n", truth=TRUE + "read 0 2 c\n"),
        Kind.SKIPPED,
    ),
    "never seen": (history(read="read 0 0 a\n", caught_up={"reader"}), Kind.UNSEEN),
    "a partition never seen": (
        history(truth=TRUE + "read 1 0 c\n", caught_up={"reader"}),
        Kind.UNSEEN,
    ),
    "two truths": (
        dataclasses.replace(
            history(), truths={"kafka": parse(TRUE), "iggy": parse("read 0 0 a\n")}
        ),
        Kind.DISAGREED,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_is_found(name: str) -> None:
    found, kind = WRONG[name]
    assert kind in kinds(found)


def test_every_kind_has_a_history() -> None:
    assert {kind for _, kind in WRONG.values()} == {*Kind}


def test_a_long_history_is_checked_in_linear_time() -> None:
    count = 20_000
    written = "".join(f"invoked - - v{n}\nok 0 {n} v{n}\n" for n in range(count))
    truth = "".join(f"read 0 {n} v{n}\n" for n in range(count))
    found = history(written, truth, truth, idempotent={"writer"}, caught_up={"reader"})
    assert find_anomalies(found) == []
