"""The steps in which a value of Avro is read, as a schema says that it was written.

A step is one row of numbers: what to do, the node that takes it (-1: it is passed over), and two
numbers more. Branches of unions and the elements of arrays and maps are stretches of steps that
jumps lead over and back to.
"""

from __future__ import annotations

from typing import Final

DONE: Final = 0
NULL: Final = 1
"""Write a null to the node and all below it; nothing is read."""
BEGIN: Final = 2
"""Write that a struct is there; nothing is read."""
FLAG: Final = 3
WHOLE: Final = 4
"""An int or a long; MORE is its bits."""
HALF: Final = 5
"""A float, whose cell is that of the same number as a double."""
WORD: Final = 6
"""A double, whose cell is its 8 bytes as a whole number."""
BYTES: Final = 7
TEXT: Final = 8
FIXED: Final = 9
"""MORE bytes."""
ENUM: Final = 10
"""The cell is the symbol's index, below MORE."""
UNION: Final = 11
"""Go on at the step that stands in TARGET of the step so many behind this one, below MORE."""
BRANCH: Final = 12
"""One of a union's; it is never come to."""
JUMP: Final = 13
"""Go on at TARGET; it is never come to, for NEXT of what is before it leads there."""
OPEN: Final = 14
"""Begin an array or a map."""
ITEM: Final = 15
"""Go on with the next element, or behind TARGET where there is none."""
REFUSE: Final = 16
"""Of a union's branch that can't be read."""

OP: Final = 0
NODE: Final = 1
MORE: Final = 2
TARGET: Final = 3
"""Never a JUMP."""
NEXT: Final = 4
"""Which step is behind this one, past jumps; of the last, which is DONE, where to begin."""
FIELDS: Final = 5
