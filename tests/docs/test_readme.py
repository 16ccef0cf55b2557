"""Every block of the README is run as it is printed, in order, but for the ports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from broker_process import BrokerProcess

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(python|sh)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
EXPECTED = [
    "",
    "",
    "",
    "from Kafka.*from Pulsar.*from Iggy",
    "from Kafka.*from Pulsar.*from Iggy",
    "",
]


@pytest.mark.timeout(300)
def test_the_readme_does_its_job(server: BrokerProcess, tmp_path: Path) -> None:
    assert len(BLOCKS) == len(EXPECTED)
    for (language, block), expected in zip(BLOCKS, EXPECTED, strict=True):
        output = run(language, with_ports(block, server), tmp_path)
        assert re.search(expected, output, re.DOTALL), f"{block}\nprinted\n{output}"
    assert list((tmp_path / "orders-table").rglob("*.parquet"))


def run(language: str, block: str, folder: Path) -> str:
    command = [sys.executable, "-c", block] if language == "python" else ["sh", "-ec", block]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{block}\nfailed with\n{done.stderr}"
    return done.stdout


def with_ports(block: str, server: BrokerProcess) -> str:
    block = block.replace("127.0.0.1:9092", server.kafka)
    block = block.replace("pulsar://127.0.0.1:6650", server.pulsar)
    block = block.replace("127.0.0.1:8090", server.iggy)
    # Commands take the default port where the reader of the README needs to give none.
    return re.sub(r"^(penstock .*)$", rf"\1 --server {server.kafka}", block, flags=re.MULTILINE)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
