"""Which version of its topic's schema each entry of Pulsar's was written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.log.header import Magic
from penstock.records import field
from penstock.records.batch_headers import check_read, read_batch_headers
from penstock.records.columns import as_bytes
from penstock.records.kernels.arguments import BytesIn, NumbersOut, TableIn, int64
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.primitives import MALFORMED, load_big
from penstock.records.kernels.protobuf import WIRE_BYTES, next_field
from penstock.records.pulsar import entry_field, metadata
from penstock.records.pulsar.decode import read_entries
from penstock.records.pulsar.metadata_pb2 import MessageMetadata

if TYPE_CHECKING:
    from penstock.records.columns import Numbers
    from penstock.session import Buffer

NO_VERSION: Final = -1
_NUMBER: Final = MessageMetadata.SCHEMA_VERSION_FIELD_NUMBER
_SIZE: Final = 8
"""Bytes of a version, which is a number to brokers and nothing but bytes to the protocol."""


class SchemaVersions(NamedTuple):
    """The version of each batch of a run, NO_VERSION where it says none, and its first offset."""

    first_offsets: Numbers
    versions: Numbers

    def of(self, offsets: Numbers) -> Numbers:
        """Return the versions of messages of this run, by their offsets."""
        batches = np.searchsorted(self.first_offsets, offsets, side="right") - 1
        found: Numbers = self.versions[batches]
        return found


def schema_versions(batches: Buffer) -> SchemaVersions:
    """Read them from a run of whole stored batches; nothing is inflated.

    Raises MalformedBatchError.
    """
    data = as_bytes(batches)
    table = read_batch_headers(data)
    entries = np.zeros((entry_field.FIELDS, table.shape[1]), np.int64)
    fields = np.empty((metadata.FIELDS, 2), np.int64)
    check_read(table, read_entries(data, table, entries, fields))
    versions = np.full(table.shape[1], NO_VERSION)
    read_schema_versions(data, table, entries, versions)
    return SchemaVersions(table[field.BASE_OFFSET], versions)


@kernel
def read_schema_versions(
    data: BytesIn, batches: TableIn, entries: TableIn, versions: NumbersOut
) -> None:
    """Fill the version of every Pulsar entry, whose metadata has been checked."""
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.PULSAR:
            continue
        position = entries[entry_field.METADATA_START, batch]
        end = entries[entry_field.METADATA_END, batch]
        while position < end and position != MALFORMED:
            number, wire_type, value, size, position = next_field(data, position, end)
            if number == _NUMBER and wire_type == WIRE_BYTES:
                versions[batch] = load_big(data, value, size) if size == _SIZE else int64(-1)
