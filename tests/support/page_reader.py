"""Somebody who reads a page and runs what is printed, block after block, in one folder.

`read` starts a process for it, so that the blocks of a page share what they imported and named, and
nothing with the tests. Commands take the broker from `PENSTOCK_SERVER`; where a block names a
default address, it gets the one of the test's broker.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from broker_process import BrokerProcess, environment
from page_blocks import Block
from pytest_runs import PLUGIN, SOURCE, extra_paths

SECONDS: Final = 560
MARK: Final = "\N{FORM FEED}"
"""What parts the output of one block from the next one's."""
A_TEST: Final = re.compile(r"^(?:async )?def test_", re.MULTILINE)


def read(blocks: list[Block], server: BrokerProcess, folder: Path) -> list[str]:
    """Run the blocks and return what each printed. Raises AssertionError where one fails."""
    addresses = {
        "127.0.0.1:9092": server.kafka,
        "pulsar://127.0.0.1:6650": server.pulsar,
        "127.0.0.1:8090": server.iggy,
    }
    sent = []
    for block in blocks:
        text = block.text
        for default, address in addresses.items():
            text = text.replace(default, address)
        sent.append(asdict(block) | {"text": text})
    done = subprocess.run(
        [sys.executable, "-u", __file__],
        input=json.dumps(sent),
        cwd=folder,
        env=surroundings(server, folder),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\nthen ended with {done.returncode}\n{done.stderr}"
    return done.stdout.split(MARK)[1:]


def surroundings(server: BrokerProcess, folder: Path) -> dict[str, str]:
    """An active environment, whose `penstock` is the one under test; the user has set nothing."""
    command = folder / "bin" / "penstock"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m penstock "$@"\n')
    command.chmod(0o755)
    path = [str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    return environment() | {
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": os.pathsep.join([str(SOURCE), *extra_paths()]),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "configuration"),
        "PENSTOCK_SERVER": server.kafka,
        # For a Java of one query the second compiler is half of what its start costs.
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
    }


def main() -> None:
    """Run what `read` has sent, until something fails."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for number, block in enumerate(json.load(sys.stdin)):
        sys.stdout.write(MARK)
        text = block["text"]
        match block["language"]:
            case "python" if A_TEST.search(text):
                run_tests(Path(f"test_block_{number}.py"), text)
            case "python":
                exec(compile(text, f"<line {block['line']}>", "exec"), names)
            case "sh":
                printed = run_commands(text)
            case "toml":
                serve_with(Path("penstock.toml"), text)
            case "json":
                compare(text, printed)


def run_tests(file: Path, text: str) -> None:
    file.write_text(text)
    code = pytest.main(["-rA", "-p", "no:cacheprovider", *PLUGIN, str(file)])
    if code != pytest.ExitCode.OK:
        sys.exit(f"{file}: {code}")


def run_commands(text: str) -> str:
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text], stdout=subprocess.PIPE, text=True, check=False
    )
    sys.stdout.write(done.stdout)
    if done.returncode:
        sys.exit(f"{text}\nended with {done.returncode}")
    return done.stdout


def serve_with(file: Path, text: str) -> None:
    """Start a broker with these settings, on free ports, and stop it."""
    file.write_text(text)
    ports = (word for name in ("kafka", "pulsar", "iggy") for word in (f"--{name}-port", "0"))
    command = ["penstock", "serve", "--config", str(file), "--format", "json", *ports]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        sys.stdout.write(broker.stdout.readline())
        broker.send_signal(signal.SIGTERM)
    if broker.returncode:
        sys.exit(f"{text}\nis refused")


def compare(text: str, printed: str) -> None:
    """Hold what the page says the last command prints against what it printed, by the names."""
    first = json.loads(printed.splitlines()[0])
    if json.loads(text).keys() != first.keys():
        sys.exit(f"{text}\nstands for\n{printed}")


if __name__ == "__main__":
    main()
