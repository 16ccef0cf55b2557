"""A client of a schema registry with Confluent's API, as far as a reader needs it.

Everything is bounded: a request and its retries in time, an answer in bytes, the schemas that one
refers to in number. Whatever a registry answers, the error names the option, the address and what
is wrong with it.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from penstock.pipeline.values.errors import SchemaError

TIMEOUT_SECONDS: Final = 10
"""How long a registry may say nothing."""
DEADLINE_SECONDS: Final = 30
"""For one answer, its retries included."""
LARGEST: Final = 4 << 20
"""Bytes of an answer."""
REFERENCES: Final = 100
"""Schemas that one refers to, those that these refer to included."""
_RETRY_SECONDS: Final = (0.2, 1.0)
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
_NOT_FOUND: Final = frozenset({40401, 40402, 40403})


class RegistryError(SchemaError):
    """The registry can't be reached, or answers what it should not."""


class UnknownSchemaError(RegistryError):
    """The registry has no such subject, version or id."""


@dataclass(frozen=True)
class Reference:
    """A schema that another one refers to by this name, before that one."""

    name: str
    text: str


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as the registry has it."""

    kind: str
    """AVRO, JSON or PROTOBUF."""
    text: str
    references: tuple[Reference, ...]
    id: int
    version: int
    """0 where it was asked for by its id."""
    topic: str = ""
    """The topic that it is a version of, where a Pulsar broker keeps it."""
    inline: bool = False
    """Whether the topic's keys and values are in its messages as one (`key_value.py`)."""


class Registry:
    """One registry, by its URL; a name and a password in it are sent as such."""

    def __init__(self, url: str, option: str) -> None:
        self._option = option
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RegistryError(f"{option}: {url!r} is no URL of a registry")
        host = parts.netloc.rpartition("@")[2]
        self.address = urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": _ACCEPT}
        if parts.username is not None:
            words = (urllib.parse.unquote(word or "") for word in (parts.username, parts.password))
            said = base64.b64encode(":".join(words).encode()).decode()
            self._headers["Authorization"] = f"Basic {said}"

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the newest schema of a subject. Raises RegistryError."""
        return self._version(subject, "latest")

    def by_id(self, number: int) -> RegisteredSchema:
        """Return the schema that values name by this id. Raises RegistryError."""
        return self._schema(self._get(f"/schemas/ids/{number}"), number)

    def _version(self, subject: str, version: str) -> RegisteredSchema:
        name = urllib.parse.quote(subject, safe="")
        answer = self._get(f"/subjects/{name}/versions/{version}")
        return self._schema(answer, _number(answer, "id"))

    def _schema(self, answer: dict[str, Any], number: int) -> RegisteredSchema:
        kind = str(answer.get("schemaType", "AVRO")).upper()
        if kind not in ("AVRO", "JSON", "PROTOBUF"):
            raise RegistryError(f"{self._at()}: schema {number} is of the unknown type {kind[:50]}")
        found: dict[str, str] = {}
        self._follow(answer, found, ())
        references = tuple(Reference(name, text) for name, text in found.items())
        text = self._text(answer)
        return RegisteredSchema(kind, text, references, number, _number(answer, "version"))

    def _follow(
        self, answer: dict[str, Any], found: dict[str, str], above: tuple[tuple[str, str], ...]
    ) -> None:
        """Add the schemas that one refers to, each behind those that it refers to itself."""
        references = answer.get("references") or []
        if not isinstance(references, list):
            raise RegistryError(f"{self._at()}: the references of a schema are no list")
        for each in references:
            wanted = [each.get(key) if isinstance(each, dict) else None for key in _REFERENCE]
            if not all(wanted):
                raise RegistryError(f"{self._at()}: a reference names {each!r:.100}")
            name, subject, version = map(str, wanted)
            if (subject, version) in above:
                raise RegistryError(
                    f"{self._at()}: the schema {subject} {version} refers to itself by its "
                    "references"
                )
            if name in found:
                continue
            if len(found) + len(above) >= REFERENCES:
                raise RegistryError(f"{self._at()}: a schema refers to more than {REFERENCES}")
            quoted = urllib.parse.quote(subject, safe="")
            inner = self._get(f"/subjects/{quoted}/versions/{version}")
            self._follow(inner, found, (*above, (subject, version)))
            found[name] = self._text(inner)

    def _text(self, answer: dict[str, Any]) -> str:
        text = answer.get("schema")
        if not isinstance(text, str):
            raise RegistryError(f"{self._at()} answers without a schema: is it a schema registry?")
        return text

    def _get(self, path: str) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_SECONDS
        for pause in (*_RETRY_SECONDS, None):
            try:
                return self._ask(path, deadline)
            except urllib.error.HTTPError as error:
                if error.code < 500 or pause is None:
                    raise self._refused(path, error) from None
            except (OSError, ValueError) as error:
                if pause is None or time.monotonic() > deadline:
                    raise RegistryError(
                        f"{self._at()} does not answer: {_words(error)}. Start it, or correct "
                        f"{self._option}"
                    ) from None
            time.sleep(pause or 0)
        raise AssertionError("the last attempt raises")

    def _ask(self, path: str, deadline: float) -> dict[str, Any]:
        request = urllib.request.Request(self.address + path, headers=self._headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
            body = bytearray()
            while piece := response.read1(1 << 16):
                body += piece
                if len(body) > LARGEST:
                    raise RegistryError(f"{self._at()} answers more than {LARGEST >> 20} MiB")
                if time.monotonic() > deadline:
                    raise RegistryError(
                        f"{self._at()} takes more than {DEADLINE_SECONDS} s for one schema"
                    )
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            said = bytes(body[:60]).decode(errors="replace")
            raise RegistryError(f"{self._at()} is no schema registry: it answers {said!r}")
        return answer

    def _refused(self, path: str, error: urllib.error.HTTPError) -> RegistryError:
        try:
            answer = json.loads(error.read(1 << 16))
        except (OSError, ValueError, RecursionError):
            answer = None
        said = answer if isinstance(answer, dict) else {}
        message = str(said.get("message") or error.reason)[:200]
        what = urllib.parse.unquote(path)
        if error.code == 404 and said.get("error_code") in _NOT_FOUND:
            return UnknownSchemaError(f"{self._at()} has no {what}: {message}")
        if error.code in (401, 403):
            return RegistryError(
                f"{self._at()} lets nobody in without the right name and password, given as "
                f"https://name:password@host: {message}"
            )
        return RegistryError(f"{self._at()} answers {error.code} to {what}: {message}")

    def _at(self) -> str:
        return f"{self._option}: the registry at {self.address}"


_REFERENCE: Final = ("name", "subject", "version")


@lru_cache(maxsize=1000)
def schema_by_id(url: str, option: str, number: int) -> RegisteredSchema:
    """Return the schema of an id, which never changes; this process remembers it."""
    return Registry(url, option).by_id(number)


def _number(answer: dict[str, Any], name: str) -> int:
    number = answer.get(name)
    return number if isinstance(number, int) else 0


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return str(reason) or type(error).__name__
