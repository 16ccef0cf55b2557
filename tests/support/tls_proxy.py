"""TLS in front of a server that has none, with a certificate that nobody but the test trusts."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def tls_in_front_of(address: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield an address that speaks TLS, and the file with the certificate to trust."""
    certificate, key = self_signed(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, context, address), daemon=True).start()
        yield f"localhost:{listener.getsockname()[1]}", certificate
        listener.shutdown(socket.SHUT_RDWR)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for localhost, and the file with its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def _serve(listener: socket.socket, context: ssl.SSLContext, address: str) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_pass_on, args=(connection, context, address), daemon=True).start()


def _pass_on(connection: socket.socket, context: ssl.SSLContext, address: str) -> None:
    host, port = address.rsplit(":", 1)
    with suppress(OSError):
        secured = context.wrap_socket(connection, server_side=True)
        behind = socket.create_connection((host, int(port)))
        threading.Thread(target=_copy, args=(behind, secured), daemon=True).start()
        _copy(secured, behind)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
