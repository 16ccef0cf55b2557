"""Azure's storage as Azurite, Microsoft's own stand-in, has it in memory; it comes from npm."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from pyarrow import fs

from patience import PATIENCE_SECONDS

VERSION = "3.37.0"
FOLDER = Path(__file__).parents[2] / "build" / "azurite"
PROGRAM = FOLDER / "node_modules" / ".bin" / "azurite-blob"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""That of every Azurite."""
CONTAINER = "lake"


class Azurite(NamedTuple):
    """One that runs, with an empty container."""

    filesystem: fs.FileSystem
    endpoint: str

    def clear(self) -> None:
        self.filesystem.delete_dir_contents(CONTAINER, missing_dir_ok=True)


def install() -> bool:
    """Return whether it is there, or could be fetched."""
    if PROGRAM.exists():
        return True
    if shutil.which("npm") is None:
        return False
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER)]
    FOLDER.mkdir(parents=True, exist_ok=True)
    ended = subprocess.run([*command, f"azurite@{VERSION}"], check=False, timeout=300)
    return ended.returncode == 0 and PROGRAM.exists()


@contextmanager
def azurite() -> Iterator[Azurite]:
    command = [str(PROGRAM), "--blobHost", "127.0.0.1", "--blobPort", "0"]
    command += ["--inMemoryPersistence", "--disableTelemetry", "--silent", "--skipApiVersionCheck"]
    with _running(command) as behind, _running([sys.executable, __file__, behind]) as host:
        services = {f"{each}_storage_authority": host for each in ("blob", "dfs")}
        services |= {f"{each}_storage_scheme": "http" for each in ("blob", "dfs")}
        filesystem = fs.AzureFileSystem(ACCOUNT, account_key=KEY, **services)
        filesystem.create_dir(CONTAINER)
        yield Azurite(filesystem, f"http://{host}/{ACCOUNT}")


@contextmanager
def _running(command: list[str]) -> Iterator[str]:
    """Run a server and yield its address, once it has printed it."""
    with subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = (re.search(r"listens on http://(\S+)", line) for line in process.stdout)
            yield next(each[1] for each in found if each)
        finally:
            process.kill()


class _Front(BaseHTTPRequestHandler):
    """Azurite as it would be if it knew `startFrom` of List Blobs, which Azure itself does.

    It is a process of its own: deltalake's calls keep all threads of theirs waiting.
    """

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    behind = ""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle_expect_100(self) -> bool:
        wanted = super().handle_expect_100()
        self.wfile.flush()
        return wanted

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = HTTPConnection(self.behind, timeout=PATIENCE_SECONDS)
        headers = {name: value for name, value in self.headers.items() if name != "Expect"}
        asked.request(self.command, self.path, body, headers)
        answer = asked.getresponse()
        content = answer.read()
        first = parse_qs(urlsplit(self.path).query).get("startFrom")
        if first:
            content = _from(content, first[0].encode())
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_A_CONNECTION:
                self.send_header(name, value)
        size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", size or "0")
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        asked.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on  # noqa: N815


_OF_A_CONNECTION = ("connection", "content-length", "date", "keep-alive", "transfer-encoding")


def _from(listing: bytes, first: bytes) -> bytes:
    """Leave out the blobs whose names come before one."""

    def kept(blob: re.Match[bytes]) -> bytes:
        return blob[0] if blob[1] >= first else b""

    return re.sub(rb"<Blob><Name>(.*?)</Name>.*?</Blob>", kept, listing, flags=re.DOTALL)


if __name__ == "__main__":
    _Front.behind = sys.argv[1]
    with ThreadingHTTPServer(("127.0.0.1", 0), _Front) as server:
        sys.stdout.write(f"listens on http://127.0.0.1:{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
