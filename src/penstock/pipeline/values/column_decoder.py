"""The decoder of a column, whichever schemas its values were written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.pipeline.values import wire_format
from penstock.pipeline.values.avro_decoder import AvroDecoder
from penstock.pipeline.values.avro_schema import parse_avro
from penstock.pipeline.values.conforming import conform
from penstock.pipeline.values.decoding import Values, values_of
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.json_decoder import JsonDecoder
from penstock.pipeline.values.protobuf import ProtobufDecoder, message_path
from penstock.pipeline.values.registry import RegistryError, UnknownSchemaError, schema_by_id
from penstock.pipeline.values.schemas import Encoding

if TYPE_CHECKING:
    from penstock.pipeline.values.avro_schema import Avro
    from penstock.pipeline.values.decoding import Decoder
    from penstock.pipeline.values.schemas import ColumnSchema
    from penstock.records.columns import Numbers

MOST_SCHEMAS = 1_000
"""Schemas of writers that a task keeps the decoders of."""
_NO_FORMAT = (
    "it does not begin with a schema's id (a zero byte and four of the id), as values of a "
    "registry do"
)


class Rejected(NamedTuple):
    """A row whose value is not of its schema."""

    row: int
    reason: str
    schema_id: int | None


class ColumnDecoder:
    """Reads a binary column as structs."""

    def __init__(self, schema: ColumnSchema) -> None:
        self._schema = schema
        self._by_writer: dict[int, Decoder | str] = {}

    def decode(self, column: pa.Array) -> tuple[pa.StructArray, list[Rejected]]:
        """Return a struct for each value: null for a null, and for what is rejected.

        Raises SchemaError where the registry does not answer.
        """
        there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        whole = len(there) == len(column)
        values = values_of(column if whole else column.drop_null())
        if self._schema.registry:
            rows, rejected = self._by_id(values)
        else:
            rows, rejected = self._plain(0, values, None)
        if not whole:
            places = np.full(len(column), -1, np.int64)
            places[there] = np.arange(len(there))
            rows = rows.take(pa.array(places, mask=places < 0))
            rejected = [each._replace(row=int(there[each.row])) for each in rejected]
        return rows, rejected

    def _by_id(self, values: Values) -> tuple[pa.StructArray, list[Rejected]]:
        ids, spans = wire_format.take_ids(values)
        behind = Values(values.data, spans)
        parts: list[pa.StructArray] = []
        rejected: list[Rejected] = []
        order: list[Numbers] = []
        for number in np.unique(ids).tolist():
            rows = np.flatnonzero(ids == number)
            part, found = self._of_writer(number, behind.chosen(rows))
            parts.append(part)
            order.append(rows)
            rejected += [each._replace(row=int(rows[each.row])) for each in found]
        if len(parts) == 1:
            return parts[0], rejected
        joined = pa.concat_arrays([pa.array([], self._schema.struct), *parts])
        places = np.empty(len(ids), np.int64)
        places[np.concatenate([*order, np.zeros(0, np.int64)])] = np.arange(len(ids))
        return joined.take(pa.array(places)), sorted(rejected)

    def _of_writer(self, number: int, values: Values) -> tuple[pa.StructArray, list[Rejected]]:
        if number < 0:
            return self._none(values, _NO_FORMAT, None)
        if self._schema.encoding is Encoding.PROTOBUF:
            return self._messages(number, values)
        return self._plain(number if self._schema.encoding is Encoding.AVRO else 0, values, number)

    def _messages(self, number: int, values: Values) -> tuple[pa.StructArray, list[Rejected]]:
        path = message_path(self._schema.descriptors, self._schema.message)
        spans, matches = wire_format.behind_path(values, path)
        if matches.all():
            return self._plain(0, Values(values.data, spans), number)
        places = np.flatnonzero(matches)
        rows, found = self._plain(0, Values(values.data, spans).chosen(places), number)
        reason = f"it is another message of its file than {self._schema.message}"
        others = [Rejected(row, reason, number) for row in np.flatnonzero(~matches).tolist()]
        found = [each._replace(row=int(places[each.row])) for each in found]
        taken = np.cumsum(matches) - 1
        return rows.take(pa.array(taken, mask=~matches)), sorted([*found, *others])

    def _plain(
        self, writer: int, values: Values, number: int | None
    ) -> tuple[pa.StructArray, list[Rejected]]:
        decoder = self._decoder(writer)
        if isinstance(decoder, str):
            return self._none(values, decoder, number)
        rows, faults = decoder.decode(values)
        rejected = [Rejected(each.row, each.reason, number) for each in faults]
        return conform(rows, self._schema.struct), rejected

    def _none(
        self, values: Values, reason: str, number: int | None
    ) -> tuple[pa.StructArray, list[Rejected]]:
        count = values.spans.shape[1]
        rows = pa.nulls(count, self._schema.struct)
        return rows, [Rejected(row, reason, number) for row in range(count)]

    def _decoder(self, writer: int) -> Decoder | str:
        """Return the decoder of a writer's schema, 0 being the reader's; or why there is none."""
        known = self._by_writer.get(writer)
        if known is None:
            if len(self._by_writer) >= MOST_SCHEMAS:
                self._by_writer.clear()
            known = self._by_writer[writer] = self._new_decoder(writer)
        return known

    def _new_decoder(self, writer: int) -> Decoder | str:
        schema = self._schema
        if schema.encoding is Encoding.JSON:
            return JsonDecoder(schema.struct)
        if schema.encoding is Encoding.PROTOBUF:
            return ProtobufDecoder(schema.descriptors, schema.message)
        reader = parse_avro(schema.text, schema.references)
        return self._avro(writer, reader) if writer else AvroDecoder(reader, reader)

    def _avro(self, writer: int, reader: Avro) -> Decoder | str:
        schema = self._schema
        try:
            found = schema_by_id(schema.registry, schema.option, writer)
            if found.kind != Encoding.AVRO:
                return f"schema {writer} is of type {found.kind}, and that of the reader of AVRO"
            texts = tuple(each.text for each in found.references)
            return AvroDecoder(parse_avro(found.text, texts), reader)
        except UnknownSchemaError as error:
            return str(error)
        except RegistryError:
            raise
        except SchemaError as error:
            return f"schema {writer} can't be read with that of the reader: {error}"
