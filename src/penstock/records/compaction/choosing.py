"""Which records and batches of a piece of log stay, which go, and which are made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, overload

import numpy as np

from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_TRANSACTIONAL,
    Magic,
    read_header,
)
from penstock.records import field
from penstock.records.kernels.arguments import MaskIn, MaskOut, TableIn, TableOut
from penstock.records.kernels.declaring import kernel
from penstock.records.pulsar import entry_field
from penstock.records.pulsar.decode import read_entries_of

if TYPE_CHECKING:
    from penstock.records.columns import Columns, Mask, Numbers
    from penstock.records.compaction.aborted import Transactions
    from penstock.records.compaction.offset_map import OffsetMap

    _Row = TypeVar("_Row", Numbers, Mask)

STAYS: Final = 0
GOES: Final = 1
CHANGES: Final = 2
IS_EMPTIED: Final = 3
"""Nothing is left of it but its header, which says what its producer has written."""

# What is counted of a batch.
_KEPT: Final = 0
_TOMBSTONES: Final = 1
"""Those of them that delete their keys."""
_COUNTED: Final = 2


class Rules(NamedTuple):
    """What one pass goes by."""

    now_ms: int
    delete_retention_ms: int
    """How long a tombstone stays after it was met first."""
    keeps_keyless: bool
    """Whether records of Kafka without a key stay, as those of Pulsar and Iggy do."""
    last_batches: Numbers
    """The base offsets of the last batches of those producers that are remembered, ascending."""


class Choice(NamedTuple):
    """Of each record whether it is kept, and of each batch what becomes of it."""

    kept: Mask
    counts: Numbers
    """How many records of each batch are kept."""
    fates: Numbers
    get_horizon: Mask
    """Which batches get a delete horizon."""
    horizon: int


def countable(columns: Columns, transactions: Transactions) -> Mask:
    """Return which records make older ones of their keys superfluous."""
    keyed, aborted = _is_keyed(columns), _aborted(columns, transactions)
    return keyed & ~_of_rows(columns, aborted) if aborted.any() else keyed


def superseded(columns: Columns, offsets: OffsetMap) -> Mask:
    """Return which records a compacted view leaves out: all but the last of each key, and that one
    too where it deletes the key, as Pulsar's own compaction does.
    """
    keyed = _is_keyed(columns)
    rows_magic = _of_rows(columns, columns.batches[field.MAGIC])
    left_out: Mask = offsets.replaced(columns, keyed)
    left_out |= keyed & _has_no_value(columns, rows_magic)
    left_out &= ~_of_rows(columns, _sealed(columns))
    return left_out


def choose(
    columns: Columns, offsets: OffsetMap, transactions: Transactions, rules: Rules
) -> Choice:
    """Return what becomes of the records and batches; the pass comes to them in their order."""
    batches = columns.batches
    has_horizon = (batches[field.ATTRIBUTES] & ATTRIBUTE_DELETE_HORIZON) != 0
    is_over = has_horizon & (batches[field.BASE_TIMESTAMP] <= rules.now_ms)
    aborted = _aborted(columns, transactions)
    replaced = offsets.replaced(columns, _is_keyed(columns))
    kept = np.empty(len(columns), np.bool_)
    counts = np.empty((_COUNTED, batches.shape[1]), np.int64)
    of_batches = _sealed(columns), aborted, is_over, int(rules.keeps_keyless)
    keep_records(batches, columns.records, replaced, *of_batches, kept, counts)
    fates = _fates(columns, counts[_KEPT])
    fates[aborted] = GOES
    gets_horizon = ~has_horizon & (counts[_TOMBSTONES] > 0)
    markers = _superfluous_markers(columns, transactions)
    gets_horizon |= markers & ~has_horizon
    fates[markers & is_over] = GOES
    fates[gets_horizon & (fates != GOES)] = CHANGES
    _keep_sequences(batches, fates, rules)
    horizon = rules.now_ms + rules.delete_retention_ms
    return Choice(kept, counts[_KEPT], fates, gets_horizon, horizon)


def _keep_sequences(batches: Numbers, fates: Numbers, rules: Rules) -> None:
    """Have something stay of the last batch of each producer, which the next one follows on."""
    needed = (fates == GOES) & np.isin(batches[field.BASE_OFFSET], rules.last_batches)
    is_marker = (batches[field.ATTRIBUTES] & ATTRIBUTE_CONTROL) != 0
    fates[needed & is_marker] = STAYS
    fates[needed & ~is_marker] = IS_EMPTIED


def _is_keyed(columns: Columns) -> Mask:
    keyed: Mask = columns.records[field.KEY_SIZE] >= 0
    return keyed


def _has_no_value(columns: Columns, rows_magic: Numbers) -> Mask:
    """Whether a record deletes its key: for Pulsar an empty value does so as well."""
    sizes = columns.records[field.VALUE_SIZE]
    found: Mask = (sizes < 0) | ((sizes == 0) & (rows_magic == Magic.PULSAR))
    return found


def _sealed(columns: Columns) -> Mask:
    """Which batches can't be looked into, for they are encrypted, and hold several messages."""
    batches = columns.batches
    sealed: Mask = (batches[field.RECORDS] == 1) & (batches[field.COUNT] > 1)
    sealed &= batches[field.MAGIC] == Magic.PULSAR
    if sealed.any():
        entries = read_entries_of(columns.data, batches)
        sealed &= entries[entry_field.IS_ENCRYPTED] != 0
    return sealed


@overload
def is_data(attributes: int) -> bool: ...


@overload
def is_data(attributes: Numbers) -> Mask: ...


def is_data(attributes: int | Numbers) -> bool | Mask:
    """Whether a batch of these attributes, or which of some, is data of a transaction."""
    kinds = ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL
    return (attributes & kinds) == ATTRIBUTE_TRANSACTIONAL


def _aborted(columns: Columns, transactions: Transactions) -> Mask:
    """Which batches are data of transactions that were aborted."""
    batches = columns.batches
    aborted = np.zeros(batches.shape[1], np.bool_)
    for batch in np.flatnonzero(is_data(batches[field.ATTRIBUTES])).tolist():
        header = read_header(columns.data.data, int(batches[field.POSITION, batch]))
        aborted[batch] = transactions.is_aborted(header)
    return aborted


def _superfluous_markers(columns: Columns, transactions: Transactions) -> Mask:
    """Which batches are markers of transactions of which there is no data before them."""
    batches = columns.batches
    found = np.zeros(batches.shape[1], np.bool_)
    attributes = batches[field.ATTRIBUTES]
    kinds = ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL
    for batch in np.flatnonzero(attributes & kinds).tolist():
        header = read_header(columns.data.data, int(batches[field.POSITION, batch]))
        if header.attributes & ATTRIBUTE_CONTROL:
            found[batch] = transactions.ends_nothing(header)
        elif header.attributes & ATTRIBUTE_TRANSACTIONAL:
            transactions.meet(header)
    return found


def _fates(columns: Columns, counts: Numbers) -> Numbers:
    """Return what becomes of batches of which so many records are kept; what has none stays."""
    batches = columns.batches
    records = batches[field.RECORDS]
    fates = np.where(counts == records, STAYS, CHANGES)
    fates[(counts == 0) & (records > 0)] = GOES
    # Gaps are made anew, so that those side by side become one.
    fates[(batches[field.COUNT] == 0) & (batches[field.MAGIC] == Magic.KAFKA)] = GOES
    return fates


def _of_rows(columns: Columns, of_batches: _Row) -> _Row:
    """Return for each record what holds for its batch."""
    of_rows: _Row = np.repeat(of_batches, columns.batches[field.RECORDS])
    return of_rows


@kernel
def keep_records(
    batches: TableIn, records: TableIn, replaced: MaskIn, sealed: MaskIn, aborted: MaskIn,
    is_over: MaskIn, keeps_keyless: int, kept: MaskOut, counts: TableOut,
) -> None:  # fmt: skip
    """Say which records stay, and count them for each batch: those whose tombstones are over, those
    that are of an aborted transaction, and those that nobody looks into are masks of batches.
    """
    for batch in range(batches.shape[1]):
        magic = batches[field.MAGIC, batch]
        counts[_KEPT, batch] = counts[_TOMBSTONES, batch] = 0
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            keyed = records[field.KEY_SIZE, row] >= 0
            size = records[field.VALUE_SIZE, row]
            is_tombstone = keyed and (size < 0 or (size == 0 and magic == Magic.PULSAR))
            stays = not replaced[row] and not (is_tombstone and is_over[batch])
            stays = stays and (keyed or keeps_keyless != 0 or magic != Magic.KAFKA)
            stays = (stays or sealed[batch]) and not aborted[batch]
            kept[row] = stays
            counts[_KEPT, batch] += stays
            counts[_TOMBSTONES, batch] += stays and is_tombstone
