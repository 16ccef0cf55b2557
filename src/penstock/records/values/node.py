"""The shape that values are read into, as kernels see it: one row of numbers for each node.

A shape is a tree: structs have their fields below them, lists their element, maps key and value.
Its nodes are numbered in the order in which they are written down, parents first, and the row of a
node says where the next one begins that does not belong to it. Node 0 is the struct of a record.
"""

from __future__ import annotations

from typing import Final

from penstock.records.kernels import fields

STRUCT: Final = 0
LIST: Final = 1
MAP: Final = 2
TEXT: Final = 3
"""The cell is a span of UTF-8, as it is of the three below: `span` says how."""
REAL: Final = 4
"""The text of a number, of any size and precision."""
WHOLE: Final = 5
"""The cell is a signed number, of as many bits as the node says."""
FLAG: Final = 6
"""The cell is 1 or 0."""
MOMENT: Final = 7
"""The text of a date or a time, which the kernel does not look into."""

KIND: Final = 0
END: Final = 1
"""The first node behind this one and all that is below it."""
BITS: Final = 2
NAMES: Final = 3
"""Where the look-up of a struct's fields by name begins in LOOK_UP."""
NAMES_SIZE: Final = 4
"""How many places it has, a power of two of which one at least is empty."""
NAME_START: Final = 5
"""Where the name of the node lies among the names' bytes."""
NAME_SIZE: Final = 6
LOOK_UP: Final = 7
"""Not of a node: fields by the hash of their names, or -1. The row may be longer than the nodes."""
FIELDS: Final = 8

FIRST: Final = 0
"""Of the columns: where a node's cells begin."""
COUNT: Final = 1
COLUMN_FIELDS: Final = 2

OFFSET: Final = fields.SIZE_BITS
"""A span is one number: its start, shifted by so many bits, and its size."""
