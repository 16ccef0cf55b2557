"""The decoder of a column, whichever schemas its values were written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.pipeline.values import wire_format
from penstock.pipeline.values.avro_decoder import AvroDecoder
from penstock.pipeline.values.avro_schema import parse_avro
from penstock.pipeline.values.conforming import conform
from penstock.pipeline.values.decoding import Values
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.json_decoder import JsonDecoder
from penstock.pipeline.values.protobuf import ProtobufDecoder, message_path
from penstock.pipeline.values.pulsar_schemas import schema_of_version
from penstock.pipeline.values.registry import RegistryError, UnknownSchemaError, schema_by_id
from penstock.pipeline.values.schemas import Encoding

if TYPE_CHECKING:
    from penstock.pipeline.values.avro_schema import Avro
    from penstock.pipeline.values.decoding import Decoder
    from penstock.pipeline.values.registry import RegisteredSchema
    from penstock.pipeline.values.schemas import ColumnSchema
    from penstock.records.columns import Numbers

MOST_SCHEMAS = 1_000
"""Schemas of writers that a task keeps the decoders of."""
_NO_FORMAT = (
    "it does not begin with a schema's id (a zero byte and four of the id), as values of a "
    "registry do"
)
_NO_VERSION: Final = "it was sent without a schema"


class Rejected(NamedTuple):
    """A row whose value is not of its schema."""

    row: int
    reason: str
    schema_id: int | None


class ColumnDecoder:
    """Reads keys or values of one topic as structs."""

    def __init__(self, schema: ColumnSchema, topic: str = "") -> None:
        self._schema = schema
        names = dict(schema.names)
        self._topic = names.get(topic, names.get("", topic))
        self._by_writer: dict[int | None, Decoder | str] = {}

    def decode(
        self, values: Values, versions: Numbers | None = None
    ) -> tuple[pa.StructArray, list[Rejected]]:
        """Return a struct for each value: null for a null, and for what is rejected.

        With the schemas of a Pulsar broker, `versions` says with which each was written. Raises
        SchemaError where the registry does not answer.
        """
        _, sizes = values.spans
        if sizes.min(initial=0) >= 0:
            return self._values(values, versions)
        there = np.flatnonzero(sizes >= 0)
        given = None if versions is None else versions[there]
        rows, rejected = self._values(values.chosen(there), given)
        places = np.full(len(sizes), -1, np.int64)
        places[there] = np.arange(len(there))
        rows = rows.take(pa.array(places, mask=places < 0))
        return rows, [each._replace(row=int(there[each.row])) for each in rejected]

    def _values(
        self, values: Values, versions: Numbers | None
    ) -> tuple[pa.StructArray, list[Rejected]]:
        if self._schema.registry:
            ids, spans = wire_format.take_ids(values)
            return self._by_number(ids, Values(values.data, spans))
        if self._schema.pulsar and versions is not None:
            return self._by_number(versions, values)
        return self._plain(None, values, None)

    def _by_number(self, ids: Numbers, values: Values) -> tuple[pa.StructArray, list[Rejected]]:
        """Read values by the numbers of their writers' schemas, below 0 where they have none."""
        if len(ids) and (ids == ids[0]).all():
            return self._of_writer(int(ids[0]), values)
        parts: list[pa.StructArray] = []
        rejected: list[Rejected] = []
        order: list[Numbers] = []
        for number in np.unique(ids).tolist():
            rows = np.flatnonzero(ids == number)
            part, found = self._of_writer(number, values.chosen(rows))
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
            return self._none(values, _NO_VERSION if self._schema.pulsar else _NO_FORMAT, None)
        if self._schema.encoding is Encoding.PROTOBUF and self._schema.registry:
            return self._messages(number, values)
        is_avro = self._schema.encoding is Encoding.AVRO
        return self._plain(number if is_avro else None, values, number)

    def _messages(self, number: int, values: Values) -> tuple[pa.StructArray, list[Rejected]]:
        path = message_path(self._schema.descriptors, self._schema.message)
        spans, matches = wire_format.behind_path(values, path)
        if matches.all():
            return self._plain(None, Values(values.data, spans), number)
        places = np.flatnonzero(matches)
        rows, found = self._plain(None, Values(values.data, spans).chosen(places), number)
        reason = f"it is another message of its file than {self._schema.message}"
        others = [Rejected(row, reason, number) for row in np.flatnonzero(~matches).tolist()]
        found = [each._replace(row=int(places[each.row])) for each in found]
        taken = np.cumsum(matches) - 1
        return rows.take(pa.array(taken, mask=~matches)), sorted([*found, *others])

    def _plain(
        self, writer: int | None, values: Values, number: int | None
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

    def _decoder(self, writer: int | None) -> Decoder | str:
        """Return the decoder of a writer's schema, or why there is none; None is the reader's."""
        known = self._by_writer.get(writer)
        if known is None:
            if len(self._by_writer) >= MOST_SCHEMAS:
                self._by_writer.clear()
            known = self._by_writer[writer] = self._new_decoder(writer)
        return known

    def _new_decoder(self, writer: int | None) -> Decoder | str:
        schema = self._schema
        if schema.encoding is Encoding.JSON:
            return JsonDecoder(schema.struct)
        if schema.encoding is Encoding.PROTOBUF:
            return ProtobufDecoder(schema.descriptors, schema.message)
        reader = parse_avro(schema.text, schema.references)
        return AvroDecoder(reader, reader) if writer is None else self._avro(writer, reader)

    def _avro(self, writer: int, reader: Avro) -> Decoder | str:
        try:
            found = self._registered(writer)
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

    def _registered(self, writer: int) -> RegisteredSchema:
        schema = self._schema
        if schema.pulsar:
            return schema_of_version(schema.pulsar, schema.option, self._topic, schema.role, writer)
        return schema_by_id(schema.registry, schema.option, writer)
