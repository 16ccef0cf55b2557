"""Which broker a command speaks to, and the names that a user gives to brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from broker_process import BrokerProcess
from command_line import Penstock
from penstock.cli.app import app
from penstock.server.config import CLIENT_VARIABLES, ENVIRONMENT_PREFIX, load_config

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without contexts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_SERVER", raising=False)
    return tmp_path


def shown(command: Penstock, *words: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(command(*words, "context", "show", "-f", "json").stdout)
    return found


def test_the_nearest_wins(
    command: Penstock, shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(command) == {"server": "127.0.0.1:9092", "from": "default"}
    command("context", "set", "here", shared_server.kafka, "--use")
    command("context", "set", "nobody", NOBODY)
    command("topic", "list")
    assert shown(command) == {"server": shared_server.kafka, "from": "context here"}
    monkeypatch.setenv("PENSTOCK_SERVER", NOBODY)
    assert f"no broker answers at {NOBODY}" in command("topic", "list", code=1).stderr
    assert shown(command) == {"server": NOBODY, "from": "PENSTOCK_SERVER"}
    command("--context", "here", "topic", "list")
    assert shown(command, "--context", "here")["from"] == "context here"
    command("--context", "nobody", "topic", "list", "--server", shared_server.kafka)


def test_contexts_are_listed_used_and_deleted(command: Penstock) -> None:
    assert "no contexts" in command("context", "list").stdout
    command("context", "set", "b", NOBODY)
    command("context", "set", "a", "old:1")
    command("context", "set", "a", "[::1]:9092,host.example:9092")
    command("context", "use", "b")
    assert json.loads(command("context", "list", "--format", "json").stdout) == [
        {"context": "a", "server": "[::1]:9092,host.example:9092", "current": False},
        {"context": "b", "server": NOBODY, "current": True},
    ]
    assert command("context", "list").stdout.splitlines()[-1].split() == ["b", NOBODY, "*"]
    command("context", "delete", "b")
    assert shown(command)["from"] == "default"
    assert 'no context "b", known are a' in command("context", "use", "b", code=2).stderr
    assert 'no context "b"' in command("--context", "b", "topic", "list", code=2).stderr


@pytest.mark.parametrize("address", ["localhost", "h:0", "h:65536", ":1", "a b:1", "h:1,", "::1:9"])
def test_what_is_no_address_is_refused(
    command: Penstock, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    expected = f'"{address}" is refused; what is needed is HOST:PORT'
    assert expected in command("context", "set", "x", address, code=2).stderr
    said = command("topic", "list", "--server", address, code=2).stderr
    assert f"--server: {expected}" in said
    monkeypatch.setenv("PENSTOCK_SERVER", address)
    assert f"PENSTOCK_SERVER: {expected}" in command("topic", "list", code=2).stderr


def test_a_context_has_a_name_that_can_be_typed(command: Penstock) -> None:
    assert "up to 64 letters" in command("context", "set", "a b", NOBODY, code=2).stderr


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"contexts": {"a": {}}}', '{"current": "b", "contexts": {}}', "\xff"]
)
def test_a_file_that_is_none_is_named(command: Penstock, home: Path, text: str) -> None:
    file = home / "penstock" / "contexts.json"
    file.parent.mkdir()
    file.write_text(text, encoding="latin-1")
    said = command("topic", "list", code=2).stderr
    assert f"{file}: no file of contexts" in said
    assert "no broker answers" in command("topic", "list", "--server", NOBODY, code=1).stderr


def test_an_address_in_the_file_is_checked_as_any_other(command: Penstock, home: Path) -> None:
    file = home / "penstock" / "contexts.json"
    file.parent.mkdir()
    file.write_text('{"current": "a", "contexts": {"a": {"server": "nonsense"}}}')
    said = command("topic", "list", code=2).stderr
    assert 'context a: "nonsense" is refused; what is needed is HOST:PORT' in said


def test_a_folder_that_cannot_be_written_is_named(command: Penstock, home: Path) -> None:
    (home / "penstock").write_text("a file")
    said = command("context", "set", "a", NOBODY, code=1).stderr
    assert "the contexts can't be written" in said
    assert shown(command)["from"] == "default"


def test_without_a_home_there_are_no_contexts(
    command: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(path: Path) -> Path:
        raise RuntimeError(path)

    monkeypatch.setattr(Path, "expanduser", nobody)
    assert shown(command)["from"] == "default"
    said = command("context", "set", "a", NOBODY, code=1).stderr
    assert "set XDG_CONFIG_HOME" in said


def variables(command: Any) -> Iterator[str]:
    """Environment variables that a command and those below it read."""
    for parameter in command.params:
        found = getattr(parameter, "envvar", None)
        yield from [found] if isinstance(found, str) else found or []
    for inner in getattr(command, "commands", {}).values():
        yield from variables(inner)


def test_a_broker_starts_beside_the_variables_of_clients() -> None:
    of_clients = set(variables(typer.main.get_command(app)))
    assert of_clients == CLIENT_VARIABLES
    assert all(name.startswith(ENVIRONMENT_PREFIX) for name in of_clients)
    assert load_config({}, dict.fromkeys(of_clients, "x")) == load_config({}, {})
