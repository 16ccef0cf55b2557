"""Values of Avro as fastavro writes them, and the words of its schemas."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro


def encode(schema: Any, *records: Any) -> list[bytes]:
    """Write each record without a schema."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    encoded = []
    for each in records:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, each)
        encoded.append(out.getvalue())
    return encoded


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, of: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": of, **more}
