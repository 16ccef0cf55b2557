"""The archive of GET_SNAPSHOT: what is in it, what is not, and one at a time."""

from __future__ import annotations

import asyncio
import io
import os
import threading
import zipfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from iggy_dialog import Answer, Dialog
from older_iggy import OlderDialog
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.iggy import snapshot
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode

PASSWORD = "open-sesame"


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    opened = await Broker.open(tmp_path, BrokerSettings(iggy_password=PASSWORD))
    yield opened
    await opened.close()


@pytest.fixture
async def dialog(broker: Broker) -> AsyncIterator[Dialog]:
    made = Dialog(broker)
    await made.log_in(password=PASSWORD)
    yield made
    made.session.close()


async def ask(dialog: Dialog, compression: int, sections: Sequence[int]) -> Answer:
    request = requests.GetSnapshot(compression, bytes(sections))
    return await dialog.ask(Command.GET_SNAPSHOT, request)


def texts(archive: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name).decode() for name in opened.namelist()}


@pytest.mark.parametrize(
    ("number", "method"),
    [
        (1, zipfile.ZIP_STORED),
        (2, zipfile.ZIP_DEFLATED),
        (3, zipfile.ZIP_BZIP2),
        (5, zipfile.ZIP_LZMA),
    ],
)
async def test_all_sections_are_in_it_and_no_secret(
    dialog: Dialog, number: int, method: int
) -> None:
    answer = await ask(dialog, number, [100])
    assert answer.status == 0
    found = texts(answer.body)
    assert list(found) == [
        "filesystem_overview.txt",
        "process_list.txt",
        "resource_usage.txt",
        "server_logs.txt",
        "server_config.txt",
    ]
    assert "metadata.sqlite" in found["filesystem_overview.txt"]
    assert f"\n{os.getpid()} " in found["process_list.txt"]
    assert "total_memory = " in found["resource_usage.txt"]
    assert "iggy_user = iggy\n" in found["server_config.txt"]
    assert PASSWORD not in "".join(found.values())
    with zipfile.ZipFile(io.BytesIO(answer.body)) as opened:
        assert {each.compress_type for each in opened.infolist()} == {method}


async def test_sections_are_those_that_are_asked_for_once(dialog: Dialog) -> None:
    assert texts((await ask(dialog, 1, [4, 6, 4])).body).keys() == {"test.txt", "server_config.txt"}
    assert texts((await ask(dialog, 1, [])).body) == {}


@pytest.mark.parametrize(
    ("compression", "sections", "refusal"),
    [
        (0, [4], ErrorCode.INVALID_COMMAND),
        (7, [4], ErrorCode.INVALID_COMMAND),
        (4, [4], ErrorCode.FEATURE_UNAVAILABLE),
        (6, [4], ErrorCode.FEATURE_UNAVAILABLE),
        (1, [0], ErrorCode.INVALID_COMMAND),
        (1, [7], ErrorCode.INVALID_COMMAND),
        (1, [100, 4], ErrorCode.INVALID_COMMAND),
    ],
)
async def test_what_is_none_is_refused(
    dialog: Dialog, compression: int, sections: list[int], refusal: ErrorCode
) -> None:
    assert (await ask(dialog, compression, sections)).status == refusal


async def test_a_section_has_an_end(dialog: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "IGGY_SNAPSHOT_LINES", 1)
    found = texts((await ask(dialog, 2, [1])).body)
    assert found["filesystem_overview.txt"].endswith("\nand more\n")
    assert limits.IGGY_SNAPSHOT_LINES > 1


async def test_one_at_a_time(
    broker: Broker, dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, began = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(*_: object) -> bytes:
        loop.call_soon_threadsafe(began.set)
        assert may_end.wait(30)
        return b"archive"

    other = Dialog(broker)
    await other.log_in(password=PASSWORD)
    monkeypatch.setattr(snapshot, "collect", slowly)
    asked = asyncio.create_task(ask(other, 1, [4]))
    await began.wait()
    assert (await ask(dialog, 1, [4])).status == ErrorCode.SNAPSHOT_FILE_COMPLETION_FAILED
    may_end.set()
    assert (await asked).body == b"archive"
    assert (await ask(dialog, 1, [4])).body == b"archive"


async def test_clients_of_0_8_ask_the_same(broker: Broker) -> None:
    older = OlderDialog(broker)
    await older.log_in(password=PASSWORD)
    status, archive = await older.ask(11, bytes([2, 1, 4]))
    assert (status, texts(archive)) == (0, {"test.txt": "test\n"})
    older.session.close()
