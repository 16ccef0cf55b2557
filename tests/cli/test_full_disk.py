"""Goal: a broker that can't start because its disk is full says so, and what to do, in one line."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.broker.broker import Broker
from penstock.cli.failure import CommandError
from penstock.cli.serve import START_BYTES, serve_command
from penstock.metadata.errors import MetadataError

NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def failing_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, free: int
) -> str:
    async def fail(*_arguments: object) -> Broker:
        raise error

    monkeypatch.setattr(Broker, "open", fail)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=free))
    with pytest.raises(CommandError) as failed:
        serve_command(data_folder=str(folder))
    return str(failed.value)


@pytest.mark.parametrize("error", [NO_SPACE, MetadataError("properties were not written")])
def test_a_full_disk_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    told = failing_start(tmp_path, monkeypatch, error, free=4096)
    assert f"{tmp_path} is full: free 1 MiB and start again" in told
    assert "\n" not in told


@pytest.mark.parametrize("error", [NO_SPACE, MetadataError("properties were not written")])
def test_what_fails_on_a_disk_with_room_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    told = failing_start(tmp_path, monkeypatch, error, free=START_BYTES)
    assert str(error) in told
    assert "is full" not in told
