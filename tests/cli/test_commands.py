"""Each command as a person types it, against a running broker."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

import pytest
import typer
from confluent_kafka import Consumer

from broker_process import BrokerProcess
from command_line import Penstock
from patience import PATIENCE_SECONDS
from penstock import __version__
from penstock.cli.app import app
from penstock.cli.commands import COMMANDS, LoadedCommands

REPOSITORY = Path(__file__).parents[2]


def run_process(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command as a person does."""
    command = [sys.executable, "-m", "penstock", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr + ran.stdout
    assert "Traceback" not in ran.stderr
    return ran


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_without_a_command_the_commands_are_listed() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "penstock"], capture_output=True, text=True, check=False
    )
    for command in ("serve", "demo", "topic", "produce", "consume", "group", "pipeline"):
        assert command in ran.stdout


def test_version() -> None:
    assert "penstock" in run_process("version").stdout
    assert set(json.loads(run_process("version", "--format", "json").stdout)) == {
        "penstock",
        "python",
        "platform",
    }


def test_a_topic_is_created_listed_described_and_deleted(penstock: Penstock, topic: str) -> None:
    (listed,) = [
        row
        for row in json.loads(penstock("topic", "list", "-f", "json").stdout)
        if row["topic"] == topic
    ]
    assert listed["partitions"] == 3
    assert topic in penstock("topic", "list").stdout
    described = json.loads(penstock("topic", "describe", topic, "-f", "json").stdout)
    assert [row["partition"] for row in described["partitions"]] == [0, 1, 2]
    assert described["config"]["cleanup.policy"] == "delete"
    table = penstock("topic", "describe", topic).stdout
    assert "NEXT OFFSET" in table
    assert "cleanup.policy" not in table
    assert "cleanup.policy = delete" in penstock("topic", "describe", topic, "--settings").stdout
    deleted = penstock("topic", "delete", topic, "--yes", "-f", "json").stdout
    assert json.loads(deleted) == {"topic": topic, "deleted": True}
    assert topic not in penstock("topic", "list").stdout


@pytest.mark.parametrize("protocol", ["pulsar", "iggy"])
def test_the_port_of_another_protocol_is_named(
    protocol: str, command: Penstock, shared_server: BrokerProcess
) -> None:
    address = getattr(shared_server, protocol).removeprefix("pulsar://")
    told = command("topic", "list", "--server", address, code=1).stderr
    assert f"{address} is a port for clients of {protocol.capitalize()}," in told


def test_lines_with_keys_go_in_and_come_out(penstock: Penstock, topic: str) -> None:
    lines = [f"key-{number % 5}:välue {number}" for number in range(20)]
    told = penstock("produce", topic, "-k", ":", "-f", "json", stdin="\n".join(lines) + "\n")
    assert json.loads(told.stdout) == {"topic": topic, "messages": 20}
    records = objects(penstock("consume", topic, "-f", "json").stdout)
    assert sorted(f"{record['key']}:{record['value']}" for record in records) == sorted(lines)
    partition_of_key = {(record["key"], record["partition"]) for record in records}
    assert len(partition_of_key) == 5
    text = penstock("consume", topic, "--count", "3").stdout
    assert len(text.splitlines()) == 3
    assert text.startswith("key-")


def test_a_group_is_listed_and_described(
    penstock: Penstock, shared_server: BrokerProcess, topic: str
) -> None:
    penstock("produce", topic, stdin="\n".join("abcdef"))
    consumer = Consumer(
        {
            "bootstrap.servers": shared_server.kafka,
            "group.id": f"group-of-{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    read = consumer.consume(6, timeout=PATIENCE_SECONDS)
    assert len(read) == 6
    consumer.commit(message=read[0], asynchronous=False)
    groups = json.loads(penstock("group", "list", "-f", "json").stdout)
    assert f"group-of-{topic}" in [group["group"] for group in groups]
    told = json.loads(penstock("group", "describe", f"group-of-{topic}", "-f", "json").stdout)
    assert told["state"] == "Stable"
    assert [row["next_offset"] for row in told["partitions"]] == [2, 2, 2]
    assert sorted(row["lag"] for row in told["partitions"]) == [1, 2, 2]
    table = penstock("group", "describe", f"group-of-{topic}").stdout
    assert "1 member" in table
    assert "LAG" in table
    consumer.close()


def test_lines_without_keys_are_spread(penstock: Penstock, topic: str) -> None:
    penstock("produce", topic, stdin="a\nb\nc\n\nlast")
    records = objects(penstock("consume", topic, "-f", "json").stdout)
    assert sorted(record["value"] for record in records) == ["", "a", "b", "c", "last"]
    assert {record["partition"] for record in records} == {0, 1, 2}
    assert {record["key"] for record in records} == {None}


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ("start", "01234"),
        ("end", ""),
        ("3", "34"),
        ("-2", "34"),
        ("@0", "01234"),
        ("@2999-01-01", ""),
        ("99", ""),
    ],
)
def test_reading_begins_where_it_is_told(
    penstock: Penstock, topic: str, offset: str, expected: str
) -> None:
    penstock("produce", topic, "-p", "1", stdin="\n".join("01234"))
    text = penstock("consume", topic, "--offset", offset, "-p", "1").stdout
    assert "".join(text.split()) == expected


def test_a_topic_that_is_not_there_is_made_by_writing_to_it(penstock: Penstock) -> None:
    name = f"cli-{uuid.uuid4().hex[:8]}"
    penstock("produce", name, stdin="hello\n")
    assert penstock("consume", name).stdout == "hello\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["topic", "describe", "no-such-topic"], 1, "'penstock topic list' shows all"),
        (["consume", "no-such-topic"], 1, "there is no such topic"),
        (["topic", "create", "not a name"], 1, "letters, digits"),
        (["topic", "create", "x", "--config", "nonsense"], 2, "KEY=VALUE"),
        (["topic", "create", "x", "-p", "20000"], 2, "20000 is not in the range 1<=x<=10000"),
        (["consume", "\udcff"], 2, "a name on the command line is not UTF-8"),
        (
            ["topic", "create", "x", "--config", "min.insync.replicas=2"],
            1,
            "min.insync.replicas is 2, which is not in effect in this version",
        ),
        (["group", "describe", "no-such-group"], 1, "'penstock group list' shows all"),
    ],
)
def test_errors_say_what_to_do_next(
    penstock: Penstock, words: list[str], code: int, said: str
) -> None:
    assert said in penstock(*words, code=code).stderr


def test_bad_offsets_and_partitions_are_refused(penstock: Penstock, topic: str) -> None:
    assert "start, end, N" in penstock("consume", topic, "-o", "soon", code=2).stderr
    assert "@2026-01-31" in penstock("consume", topic, "-o", "@soon", code=2).stderr
    assert "has partitions 0 to 2" in penstock("consume", topic, "-p", "9", code=2).stderr
    again = penstock("topic", "create", topic, code=1)
    assert "the topic is there already" in again.stderr


def test_without_a_broker_the_next_step_is_named() -> None:
    ran = run_process("topic", "list", "--server", "127.0.0.1:1", code=1)
    assert "'penstock serve' starts one" in ran.stderr


def test_an_option_without_its_value_is_named() -> None:
    assert "requires an argument" in run_process("produce", "x", "-k", code=2).stderr


def test_a_reader_that_has_had_enough_is_no_error(
    shared_server: BrokerProcess, penstock: Penstock, topic: str
) -> None:
    penstock("produce", topic, stdin="line\n" * 5000)
    command = [sys.executable, "-m", "penstock", "consume", topic]
    with subprocess.Popen(
        [*command, "--server", shared_server.kafka],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        assert process.stderr.read() == ""


def test_every_command_and_option_has_a_help_text() -> None:
    def look(command: Any, path: str) -> None:
        assert command.help, path
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{path} {parameter.name}"
        for name, inner in getattr(command, "commands", {}).items():
            look(inner, f"{path} {name}")

    look(typer.main.get_command(app), "penstock")


def test_the_list_of_commands_says_what_their_own_help_texts_do() -> None:
    loaded = LoadedCommands()
    assert {name: loaded[name].get_short_help_str(1_000) for name in loaded} == {
        name: place.summary for name, place in COMMANDS.items()
    }


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    assert run_process("--version").stdout == f"penstock {__version__}\n"


@pytest.mark.parametrize("words", [["--version"], ["version"], ["--help"]])
def test_what_needs_no_broker_loads_next_to_nothing(words: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "penstock", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert not loaded & {"asyncio", "rich", "importlib.metadata", "tomllib", "penstock.limits"}
    assert len(loaded) < 180


@pytest.mark.parametrize("words", ["pipeline status", "pipeline stop", "import"])
def test_a_path_that_no_disk_takes_is_told_in_one_line(command: Penstock, words: str) -> None:
    name = "x" * 300
    topic = ["orders"] if words == "import" else []
    said = command(*words.split(), name, *topic, code=1).stderr
    assert said.startswith("penstock: ")
    assert name in said
    assert "can't be used: File name too long" in said
    assert said.count("\n") == 1
