"""How kernels add to columns: each node has a column of cells, with a mask of what is not null.

The cell of a list or a map is the number of its elements that there are in all by its end, the one
of a struct is not written. Nothing here checks for room: `Cells` has enough for all that a record
of so many bytes can hold. Of an index without a sign the compiler need not ask which end of an
array it counts from, at each of several accesses a cell.
"""

from __future__ import annotations

from penstock.records.kernels.arguments import MaskOut, NumbersOut, TableIn, TableOut, int64, uint64
from penstock.records.kernels.declaring import helper
from penstock.records.values import node


@helper
def push(columns: TableOut, cells: NumbersOut, valid: MaskOut, place: int, number: int) -> None:
    """Add a cell to the column of a node."""
    column = uint64(place)
    count = columns[node.COUNT, column]
    at = uint64(columns[node.FIRST, column] + count)
    cells[at] = number
    valid[at] = True
    columns[node.COUNT, column] = count + 1


@helper
def push_struct(columns: TableOut, valid: MaskOut, place: int) -> None:
    """Add to the column of a struct, whose cell nobody reads."""
    column = uint64(place)
    count = columns[node.COUNT, column]
    valid[uint64(columns[node.FIRST, column] + count)] = True
    columns[node.COUNT, column] = count + 1


@helper
def _is_list(nodes: TableIn, place: int) -> bool:
    kind = nodes[node.KIND, uint64(place)]
    return kind == node.LIST or kind == node.MAP  # noqa: PLR1714  # numba builds no tuple


@helper
def push_null(
    nodes: TableIn, columns: TableOut, cells: NumbersOut, valid: MaskOut, place: int
) -> None:
    """Add a null to the column of a node, and to those of all fields below it."""
    end = nodes[node.END, place]
    while place < end:
        column = uint64(place)
        count = columns[node.COUNT, column]
        at = uint64(columns[node.FIRST, column] + count)
        is_list = _is_list(nodes, place)
        cells[at] = columns[node.COUNT, place + 1] if is_list else int64(0)
        valid[at] = False
        columns[node.COUNT, column] = count + 1
        place = nodes[node.END, column] if is_list else place + 1


@helper
def take_back(nodes: TableIn, columns: TableOut, cells: NumbersOut, records: int) -> None:
    """Remove what a record has added that turned out to be none, behind so many whole ones.

    Nothing has to be remembered of where each record begins, which costs as much as three cells:
    what is in no list has one cell a record, and the last cell of a list says how many there are of
    what is in it.
    """
    columns[node.COUNT, 0] = records
    for place in range(columns.shape[1]):
        is_list = _is_list(nodes, place)
        if not (is_list or place == 0):
            continue
        count = columns[node.COUNT, place]
        if is_list and count > 0:
            count = cells[columns[node.FIRST, place] + count - 1]
        below = int64(place + 1)
        while below < nodes[node.END, place]:
            columns[node.COUNT, below] = count
            below = nodes[node.END, below] if _is_list(nodes, below) else below + 1
