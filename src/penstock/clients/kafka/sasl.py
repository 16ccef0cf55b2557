"""Logging in to a Kafka broker: PLAIN (RFC 4616) and SCRAM (RFC 5802), in Kafka's messages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Final

from penstock.clients.access import LoginError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.clients.access import Password

PLAIN: Final = "PLAIN"
_SCRAM: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Final = (PLAIN, *_SCRAM)

_NONCE_BYTES: Final = 24
_LEAST_ITERATIONS: Final = 4096
_MOST_ITERATIONS: Final = 1_000_000
"""What RFC 7677 asks for at least, and what costs a client less than a second."""
_NO_BINDING: Final = "n,,"


def log_in(login: Password, exchange: Callable[[bytes], bytes]) -> None:
    """Have `exchange` send what proves who we are. Raises LoginError, and what `exchange` does."""
    if login.mechanism == PLAIN:
        exchange(f"\0{login.user}\0{login.password}".encode())
    else:
        _scram(login, _SCRAM[login.mechanism], exchange)


def _scram(login: Password, digest: str, exchange: Callable[[bytes], bytes]) -> None:
    nonce = base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
    user = login.user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    challenge = exchange(f"{_NO_BINDING}{first}".encode()).decode()
    asked = _fields(challenge)
    try:
        salt, iterations = base64.b64decode(asked["s"]), int(asked["i"])
        both = asked["r"]
    except (KeyError, ValueError) as error:
        raise LoginError(f"the broker's challenge {challenge!r} is none") from error
    if not both.startswith(nonce) or not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        raise LoginError(f"the broker asks for what no broker should: {iterations} iterations")
    salted = hashlib.pbkdf2_hmac(digest, login.password.encode(), salt, iterations)
    binding = base64.b64encode(_NO_BINDING.encode()).decode()
    last = f"c={binding},r={both}"
    said = f"{first},{challenge},{last}".encode()
    key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, key).digest(), said, digest)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    answer = _fields(exchange(f"{last},p={base64.b64encode(proof).decode()}".encode()).decode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), said, digest)
    if not hmac.compare_digest(answer.get("v", ""), base64.b64encode(expected).decode()):
        raise LoginError("the broker does not know the password either: it can't sign with it")


def _fields(message: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.split(",") if "=" in part)
