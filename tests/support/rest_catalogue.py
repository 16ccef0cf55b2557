"""Iceberg's REST catalogue, as small as tables need it, over pyiceberg's own SQL one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import CommitTableRequest

TOKEN = "open-sesame"
WAREHOUSE = "warehouse"


class RestCatalogue(ThreadingHTTPServer):
    """Tables by their names; who brings the token may do all."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        folder.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{folder}/catalog.db"
        self.tables = SqlCatalog("behind", uri=uri, warehouse=str(folder))
        self.lock = threading.Lock()
        self.asked: list[str] = []
        """What was asked for, in order."""
        self.answers_lost = 0
        """How many of the next commits are made, and answered by a proxy that gave up."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def rest_catalogue(folder: Path) -> Iterator[RestCatalogue]:
    with RestCatalogue(folder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Request(BaseHTTPRequestHandler):
    server: RestCatalogue
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve(b"")

    def do_HEAD(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _serve(self, body: bytes) -> None:
        split = urlsplit(self.path)
        self.server.asked.append(split.path)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._fail(401, "NotAuthorizedException", "no token that is known")
            return
        place = tuple(split.path.strip("/").split("/"))
        try:
            with self.server.lock:
                self._do(place, parse_qs(split.query), body)
        except NoSuchTableError as error:
            self._fail(404, "NoSuchTableException", str(error))
        except CommitFailedException as error:
            self._fail(409, "CommitFailedException", str(error))

    def _do(self, place: tuple[str, ...], query: dict[str, list[str]], body: bytes) -> None:
        match place:
            case ("v1", "config"):
                if query.get("warehouse", [WAREHOUSE]) != [WAREHOUSE]:
                    self._fail(400, "BadRequestException", "Unable to find warehouse")
                    return
                self._answer({"defaults": {}, "overrides": {}})
            case ("v1", "namespaces"):
                self.server.tables.create_namespace_if_not_exists(
                    tuple(json.loads(body)["namespace"])
                )
                self._answer({"namespace": json.loads(body)["namespace"], "properties": {}})
            case ("v1", "namespaces", _):
                self._fail(404, "NoSuchNamespaceException", "no such namespace")
            case ("v1", "namespaces", namespace, "tables"):
                self._stage(namespace, CreateTableRequest.model_validate_json(body))
            case ("v1", "namespaces", namespace, "tables", name):
                if body:
                    self._commit((namespace, name), CommitTableRequest.model_validate_json(body))
                else:
                    self._answer_table(self.server.tables.load_table((namespace, name)))
            case _:
                self._fail(404, "NotFoundException", "nothing is here")

    def _stage(self, namespace: str, request: CreateTableRequest) -> None:
        assert request.stage_create, "tables are made by their first commit"
        staged = self.server.tables._create_staged_table(
            (namespace, request.name),
            request.table_schema,
            request.location,
            **({"partition_spec": request.partition_spec} if request.partition_spec else {}),
            properties=request.properties,
        )
        self._answer_table(staged)

    def _commit(self, name: tuple[str, str], request: CommitTableRequest) -> None:
        table: Any = SimpleNamespace(name=lambda: name)
        done = self.server.tables.commit_table(table, request.requirements, request.updates)
        if self.server.answers_lost:
            self.server.answers_lost -= 1
            self._fail(504, "GatewayTimeout", "no answer in time")
            return
        self._answer_table(done)

    def _answer_table(self, table: Any) -> None:
        self._answer(
            {
                "metadata-location": table.metadata_location,
                "metadata": json.loads(table.metadata.model_dump_json()),
                "config": {},
            }
        )

    def _fail(self, status: int, kind: str, message: str) -> None:
        error = {"message": message, "type": kind, "code": status}
        self._answer({"error": error}, status)

    def _answer(self, content: dict[str, Any], status: int = 200) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
