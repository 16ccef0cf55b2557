"""Typed columns: what records hold as JSON, Avro or Protobuf, as columns of real types."""
