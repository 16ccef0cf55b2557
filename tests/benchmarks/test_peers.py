"""What each peer is told: the durability, its ports, and nothing else by accident."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from versus.peers import iggy, kafka, maven, pulsar
from versus.peers.peer import Durability, NotAvailableError
from versus.peers.penstock import Penstock

PORTS = {"kafka": 1, "controller": 2, "pulsar": 3, "http": 4, "bookie": 5}


@pytest.mark.parametrize(("durability", "flush"), [("flushed", 1), ("written", None)])
def test_kafka_flushes_each_batch_or_leaves_it(durability: str, flush: int | None) -> None:
    settings = kafka.properties(Path("data"), PORTS, Durability(durability))
    assert settings.get("log.flush.interval.messages") == flush
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"


@pytest.mark.parametrize(("durability", "sync"), [("flushed", "true"), ("written", "false")])
def test_pulsar_syncs_its_journal_or_does_not(durability: str, sync: str) -> None:
    settings = pulsar.configuration(PORTS, Durability(durability))
    assert settings["journalSyncData"] == sync
    assert settings["brokerServicePort"] == 3


def test_iggy_writes_each_batch_and_syncs_when_told() -> None:
    assert iggy.options(Durability.WRITTEN) == {"messages_required_to_save": "1"}
    assert iggy.options(Durability.FLUSHED)["enforce_fsync"] == "true"


@pytest.mark.parametrize(("durability", "word"), [("flushed", "acknowledged"), ("written",) * 2])
def test_penstock_is_told_the_same(
    durability: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_FLUSH", "nonsense")
    launch = Penstock().prepare(tmp_path, Durability(durability))
    assert launch.command[launch.command.index("--flush") + 1] == word
    assert launch.environment is not None
    assert "PENSTOCK_FLUSH" not in launch.environment
    assert len(set(launch.ports.values())) == 3


def test_pom_names_each_artifact() -> None:
    text = maven.pom("name", ["group:one:1.0", "group:two:2.0"])
    space = "{http://maven.apache.org/POM/4.0.0}"
    found = ET.fromstring(text).iter(f"{space}dependency")
    assert [[part.text for part in one] for one in found] == [
        ["group", "one", "1.0"],
        ["group", "two", "2.0"],
    ]


def test_without_maven_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotAvailableError, match="java is not installed"):
        kafka.Kafka().obtain(tmp_path)


def test_what_is_there_already_is_not_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(maven.shutil, "which", lambda name: name)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("Maven was called"))
    folder = tmp_path / "thing"
    folder.mkdir()
    (folder / "complete").write_text("group:thing:1")
    assert maven.fetch(tmp_path, "thing", ["group:thing:1"]) == folder / "libraries"


def test_an_iggy_server_that_can_not_run_is_no_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(iggy.VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(NotAvailableError, match="can't be run"):
        iggy.Iggy().obtain(tmp_path)
