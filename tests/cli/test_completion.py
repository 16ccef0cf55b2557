"""What a shell is offered after a Tab."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from broker_process import BrokerProcess
from command_line import Penstock

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(command: Penstock, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Returns what bash is offered at the end of a line, without a word of complaint."""

    def offered(line: str) -> list[str]:
        monkeypatch.setenv("_PENSTOCK_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        printed = command()
        monkeypatch.delenv("_PENSTOCK_COMPLETE")
        assert printed.stderr == ""
        return printed.stdout.split()

    return offered


def test_topics_are_offered_wherever_one_is_named(
    complete: Complete, topic: str, shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SERVER", shared_server.kafka)
    for words in ("consume", "produce", "topic describe", "topic delete"):
        assert topic in complete(f"penstock {words} cli-"), words
    assert complete(f"penstock consume {topic[:-1]}") == [topic]
    assert complete("penstock consume no-such") == []


def test_the_server_is_that_of_the_line(
    complete: Complete, topic: str, shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SERVER", "127.0.0.1:1")
    assert complete(f"penstock consume --server {shared_server.kafka} {topic}") == [topic]
    assert complete(f"penstock consume {topic}") == []
    assert complete(f"penstock consume --server nonsense {topic}") == []


def test_contexts_are_offered(
    complete: Complete, command: Penstock, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    command("context", "set", "here", "127.0.0.1:1")
    assert complete("penstock context use h") == ["here"]
    assert complete("penstock --context h") == ["here"]


def test_a_broker_that_does_not_answer_is_not_waited_for(
    complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("PENSTOCK_SERVER", f"127.0.0.1:{silent.getsockname()[1]}")
        assert complete("penstock consume x") == []
        assert complete("penstock group describe x") == []
