"""The file of contexts: brokers that a user gave names, and which of them commands speak to.

It is `penstock/contexts.json` in $XDG_CONFIG_HOME, or else in `~/.config`:

    {"current": "staging", "contexts": {"staging": {"server": "10.0.0.7:9092"}}}
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from penstock.cli.failure import CommandError, UsageError


class Contexts(NamedTuple):
    """What the file says; `current` is a key of `servers` or None."""

    current: str | None
    servers: dict[str, str]
    """Address by name."""

    def server(self, name: str) -> str:
        """Raises UsageError for a name that is not there."""
        if name not in self.servers:
            known = ", ".join(sorted(self.servers)) or "none"
            raise UsageError(
                f'there is no context "{name}", known are {known}; '
                "'penstock context set NAME HOST:PORT' makes one"
            )
        return self.servers[name]


def load_contexts() -> Contexts:
    """Read the file; without one there are no contexts. Raises UsageError."""
    path = _path()
    if path is None:
        return Contexts(None, {})
    try:
        return _parsed(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return Contexts(None, {})
    except OSError as error:
        raise UsageError(
            f"{path}: the contexts can't be read: {error.strerror}; --server does without"
        ) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path}: no file of contexts; mend it or remove it, --server does without"
        ) from error


def save_contexts(contexts: Contexts) -> None:
    """Replace the file. Raises CommandError."""
    path = _path()
    if path is None:
        raise CommandError("there is no home folder to keep contexts in; set XDG_CONFIG_HOME")
    named = {name: {"server": server} for name, server in sorted(contexts.servers.items())}
    text = json.dumps({"current": contexts.current, "contexts": named}, indent=2)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise CommandError(f"{path}: the contexts can't be written: {error.strerror}") from error


def _path() -> Path | None:
    try:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    except RuntimeError:  # Nobody's home, as in some containers.
        return None
    return folder / "penstock" / "contexts.json"


def _parsed(stored: dict[str, Any]) -> Contexts:
    servers = {str(name): str(each["server"]) for name, each in stored["contexts"].items()}
    current = stored.get("current")
    if current is not None and current not in servers:
        raise ValueError(current)
    return Contexts(current, servers)
