"""How kernels add to columns: each node has a column of cells, with a mask of what is not null.

The cell of a list or a map is the number of its elements that there are in all by its end, the one
of a struct says nothing. Nothing here checks for room: `Cells` has enough for all that a record of
so many bytes can hold.
"""

from __future__ import annotations

from penstock.records.kernels.arguments import MaskOut, NumbersOut, TableIn, TableOut, int64
from penstock.records.kernels.declaring import helper
from penstock.records.values import node


@helper
def push(columns: TableOut, cells: NumbersOut, valid: MaskOut, place: int, number: int) -> None:
    """Add a cell to the column of a node."""
    count = columns[node.COUNT, place]
    at = columns[node.FIRST, place] + count
    cells[at] = number
    valid[at] = True
    columns[node.COUNT, place] = count + 1


@helper
def push_null(
    nodes: TableIn, columns: TableOut, cells: NumbersOut, valid: MaskOut, place: int
) -> None:
    """Add a null to the column of a node, and to those of all fields below it."""
    end = nodes[node.END, place]
    while place < end:
        count = columns[node.COUNT, place]
        at = columns[node.FIRST, place] + count
        kind = nodes[node.KIND, place]
        is_list = kind == node.LIST or kind == node.MAP  # noqa: PLR1714  # numba builds no tuple
        cells[at] = columns[node.COUNT, place + 1] if is_list else int64(0)
        valid[at] = False
        columns[node.COUNT, place] = count + 1
        place = nodes[node.END, place] if is_list else place + 1


@helper
def keep_counts(columns: TableOut) -> None:
    """Remember where a record begins."""
    for place in range(columns.shape[1]):
        columns[node.KEPT, place] = columns[node.COUNT, place]


@helper
def take_back(columns: TableOut) -> None:
    """Remove what a record has added that turned out to be none."""
    for place in range(columns.shape[1]):
        columns[node.COUNT, place] = columns[node.KEPT, place]
