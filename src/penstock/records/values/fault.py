"""What is wrong with a value, by the number that a kernel leaves for its record."""

from __future__ import annotations

from typing import Final

NONE: Final = 0
ENDS_EARLY: Final = 1
NOT_TEXT: Final = 2
UNEXPECTED: Final = 3
WRONG_TYPE: Final = 4
OUT_OF_RANGE: Final = 5
TWICE: Final = 6
TOO_DEEP: Final = 7
BAD_ESCAPE: Final = 8
BYTES_LEFT: Final = 9
NO_BRANCH: Final = 10
TOO_MANY: Final = 11
NEGATIVE_SIZE: Final = 12

REASONS: Final = {
    ENDS_EARLY: "it ends too early",
    NOT_TEXT: "its bytes are no UTF-8",
    UNEXPECTED: "a byte that can't stand there",
    WRONG_TYPE: "a value of another type",
    OUT_OF_RANGE: "a number out of the type's range",
    TWICE: "a field that is there twice",
    TOO_DEEP: "it is nested too deeply",
    BAD_ESCAPE: "an escape that stands for no character",
    BYTES_LEFT: "bytes that are left behind its end",
    NO_BRANCH: "an index that its union or enum does not have",
    TOO_MANY: "more elements than it has bytes",
    NEGATIVE_SIZE: "a size below zero",
}
