"""An object store as S3 is spoken to, in memory: as much of it as tables need.

Of a signature only the name of its key is looked at. A condition of a PUT is, for by it Delta sees
who was first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from urllib.request import urlopen
from xml.sax.saxutils import escape, unescape

BUCKET = "bucket"
KEY = "anybody"

WHEN = "2026-11-22T12:00:00.000Z"
WHEN_SAID = "Sun, 22 Nov 2026 12:00:00 GMT"


class Server(ThreadingHTTPServer):
    """Objects by their path, bucket included."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.lock = threading.Lock()
        self.forgets = False
        self.lost = ""
        """The next PUT of a path that has this in it is done, and not answered."""


class ObjectStore:
    """A store in a process of its own: deltalake's calls keep all threads of theirs waiting."""

    def __init__(self, address: str) -> None:
        self.address = address

    def names(self) -> list[str]:
        """Return the paths of all objects, bucket included."""
        with urlopen(f"{self.address}/") as answer:
            return [str(name) for name in json.load(answer)]

    def lose_an_answer(self, part: str) -> None:
        """Have the next PUT of a path with this part done, and the connection end."""
        self._ask(f"lose={quote(part)}")

    def forget_conditions(self) -> None:
        """Be a store that takes each PUT, until it is cleared."""
        self._ask("forget")

    def clear(self) -> None:
        """Have no objects, as in the beginning."""
        self._ask("clear")

    def _ask(self, query: str) -> None:
        with urlopen(f"{self.address}/?{query}"):
            pass


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield ObjectStore(process.stdout.readline().strip())
        finally:
            process.kill()


class _Request(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle_expect_100(self) -> bool:
        wanted = super().handle_expect_100()
        self.wfile.flush()
        return wanted

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        split = urlsplit(self.path)
        self.key = unquote(split.path).lstrip("/")
        self.query = parse_qs(split.query, keep_blank_values=True)
        if self.key and f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
            self._fail(403, "InvalidAccessKeyId")
            return False
        if self.key and self.key.partition("/")[0] != BUCKET:
            self._fail(404, "NoSuchBucket")
            return False
        return True

    def do_GET(self) -> None:
        if not self.key:
            self.server.lost = self.query.get("lose", [""])[0]
            if "clear" in self.query:
                self.server.objects.clear()
            self.server.forgets = "forget" in self.query
            self._answer(200, json.dumps(sorted(self.server.objects)).encode())
            return
        if "/" not in self.key.rstrip("/"):
            self._list()
            return
        self._get()

    def do_HEAD(self) -> None:
        if "/" not in self.key.rstrip("/"):
            self._answer(200)
            return
        self._get()

    def _get(self) -> None:
        content = self.server.objects.get(self.key)
        if content is None:
            self._fail(404, "NoSuchKey")
            return
        status, headers, part = 200, {}, content
        wanted = self.headers.get("Range")
        if wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(content) - int(last))
            end = min(int(last) + 1, len(content)) if first and last else len(content)
            part, status = content[start:end], 206
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        self._answer(status, part, {**headers, "ETag": _tag(content), "Last-Modified": WHEN_SAID})

    def do_PUT(self) -> None:
        body = self._body()
        with self.server.lock:
            if "uploadId" in self.query:
                parts = self.server.uploads[self.query["uploadId"][0]]
                parts[int(self.query["partNumber"][0])] = body
            elif self._is_refused():
                self._fail(412, "PreconditionFailed")
                return
            else:
                self.server.objects[self.key] = body
                if self.server.lost and self.server.lost in self.key:
                    self.server.lost = ""
                    self.close_connection = True
                    return
        self._answer(200, b"", {"ETag": _tag(body)})

    def _is_refused(self) -> bool:
        is_new_only = self.headers.get("If-None-Match") == "*" and not self.server.forgets
        return is_new_only and self.key in self.server.objects

    def do_POST(self) -> None:
        body = self._body()
        if "uploads" in self.query:
            number = uuid.uuid4().hex
            self.server.uploads[number] = {}
            self._xml(
                f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId>"
                "</InitiateMultipartUploadResult>"
            )
        elif "uploadId" in self.query:
            parts = self.server.uploads.pop(self.query["uploadId"][0])
            content = b"".join(parts[number] for number in sorted(parts))
            self.server.objects[self.key] = content
            self._xml(
                f"<CompleteMultipartUploadResult><ETag>{_tag(content)}</ETag>"
                "</CompleteMultipartUploadResult>"
            )
        else:
            names = [each.partition("</Key>")[0] for each in body.decode().split("<Key>")[1:]]
            for name in names:
                self.server.objects.pop(f"{self.key.rstrip('/')}/{unescape(name)}", None)
            gone = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
            self._xml(f"<DeleteResult>{gone}</DeleteResult>")

    def do_DELETE(self) -> None:
        self._body()
        self.server.objects.pop(self.key, None)
        self._answer(204)

    def _list(self) -> None:
        bucket = self.key.rstrip("/")
        prefix = self.query.get("prefix", [""])[0]
        delimiter = self.query.get("delimiter", [""])[0]
        names = sorted(
            key.removeprefix(f"{bucket}/")
            for key in list(self.server.objects)
            if key.startswith(f"{bucket}/{prefix}")
        )
        after = self.query.get("start-after", [""])[0]
        folders: set[str] = set()
        entries = []
        for name in (name for name in names if name > after):
            rest = name.removeprefix(prefix)
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            content = self.server.objects[f"{bucket}/{name}"]
            entries.append(
                f"<Contents><Key>{escape(name)}</Key><LastModified>{WHEN}</LastModified>"
                f"<ETag>{_tag(content)}</ETag><Size>{len(content)}</Size></Contents>"
            )
        entries += [
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in sorted(folders)
        ]
        self._xml(
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(entries)}</KeyCount><MaxKeys>1000</MaxKeys>"
            f"<IsTruncated>false</IsTruncated>{''.join(entries)}</ListBucketResult>"
        )

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b"".join(_chunks(self.rfile.readline, self.rfile.read))
            self.rfile.readline()
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            inner = BytesIO(content)
            content = b"".join(_chunks(inner.readline, inner.read))
        return content

    def _xml(self, text: str) -> None:
        self._answer(200, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode())

    def _fail(self, status: int, code: str) -> None:
        self._answer(
            status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        )

    def _answer(self, status: int, content: bytes = b"", headers: Any = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("x-amz-bucket-region", "us-east-1")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()


def _chunks(line: Callable[[], bytes], read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield chunks, as both HTTP and S3 write them; what S3 puts behind them is left."""
    while size := int(line().partition(b";")[0], 16):
        yield read(size)
        line()


def _tag(content: bytes) -> str:
    return f'"{md5(content, usedforsecurity=False).hexdigest()}"'


if __name__ == "__main__":
    with Server() as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
