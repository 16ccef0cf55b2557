"""A schema registry with Confluent's API, in memory, that can also misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class SchemaRegistry:
    """What a registry knows; `answer` may be replaced to have it misbehave."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.compatibility = "BACKWARD"
        self.requests: list[str] = []
        self.authorization: str | None = None
        self.body: bytes | None = None
        """Sent instead of any answer, with `status`."""
        self.status = 200
        self.delay_seconds = 0.0
        """Between the pieces of a body."""
        self.url = ""

    def register(
        self, subject: str, schema: Any, kind: str = "AVRO", references: list[Any] | None = None
    ) -> int:
        """Add a version; returns the schema's id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        number = 100_000 + len(self.schemas)
        self.schemas[number] = {"schema": text, "schemaType": kind, "references": references or []}
        self.subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        match [unquote(part) for part in path.split("?", maxsplit=1)[0].strip("/").split("/")]:
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, self.schemas[int(number)]
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", subject, "versions", version] if subject in self.subjects:
                numbers = self.subjects[subject]
                place = len(numbers) if version == "latest" else int(version)
                number = numbers[place - 1]
                more = {"subject": subject, "version": place, "id": number}
                return 200, self.schemas[number] | more
            case ["subjects", subject, "versions", _]:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            case ["config"]:
                return 200, {"compatibilityLevel": self.compatibility}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


@contextmanager
def schema_registry() -> Iterator[SchemaRegistry]:
    """Run a registry on a free port of this machine."""
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.requests.append(self.path)
            registry.authorization = self.headers.get("Authorization")
            status, answer = registry.answer(self.path)
            body = registry.body if registry.body is not None else json.dumps(answer).encode()
            self.send_response(status if registry.body is None else registry.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for start in range(0, len(body), 1 << 16):
                time.sleep(registry.delay_seconds)
                self.wfile.write(body[start : start + (1 << 16)])

        def log_message(self, *args: Any) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # The client may have had enough.
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def framed(number: int, value: bytes, path: bytes = b"") -> bytes:
    """Return a value in Confluent's wire format; `path` is the place of a Protobuf message."""
    return b"\0" + number.to_bytes(4, "big") + path + value
