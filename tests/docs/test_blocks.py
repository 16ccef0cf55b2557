"""Every block of every page is run as it is printed, in order, or says why it is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from page_blocks import PAGES, ROOT, Block, blocks_of, faults_of
from page_reader import read

NOT_RUN = 9
"""Blocks of all pages that can't be run. Whoever marks another one comes here."""
ALL_THREE = "from Kafka.*from Pulsar.*from Iggy"
PRINTED = {"README.md": ["", "", "", ALL_THREE, ALL_THREE, ""]}
"""What blocks have to print, as regular expressions."""
LEFT = {"README.md": "orders-table/**/*.parquet"}
"""Files that are there in the end."""
BLOCKS = {str(path.relative_to(ROOT)): blocks_of(path.read_text()) for path in PAGES}
RUN = {
    page: found
    for page, blocks in BLOCKS.items()
    if (found := [block for block in blocks if not block.not_run])
}
LONG = {
    "docs/spark-export.md",
    "docs/spark-live-table.md",
    "docs/spark-pipelines.md",
    "docs/spark-sink.md",
    "docs/spark-source.md",
    "docs/spark-tables.md",
    "docs/spark-values.md",
    "docs/spark.md",
}
"""Spark is started twice or more for each, to do what it does for the README."""
SAMPLE = """\
* a list

    and its second paragraph

<!-- not run: needs root -->
```sh
reboot
```
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.soak] if page in LONG else []) for page in RUN],
)
def test_a_page_does_what_it_says(page: str, server: BrokerProcess, tmp_path: Path) -> None:
    blocks = RUN[page]
    printed = read(blocks, server, tmp_path)
    expected = PRINTED.get(page, [""] * len(blocks))
    for pattern, output in zip(expected, printed, strict=True):
        assert re.search(pattern, output, re.DOTALL), output
    assert list(tmp_path.glob(LEFT.get(page, "*")))


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_every_block_can_be_run_or_says_why_not(path: Path) -> None:
    assert faults_of(path.read_text()) == []


def test_few_blocks_are_not_run() -> None:
    assert sum(len(BLOCKS[page]) - len(RUN.get(page, [])) for page in BLOCKS) == NOT_RUN


def test_a_mark_is_seen() -> None:
    assert faults_of(SAMPLE) == []
    assert blocks_of(SAMPLE) == [Block(6, "sh", "reboot\n", "needs root")]


@pytest.mark.parametrize(
    "page",
    [
        "```\nplain\n```\n",
        "```console\n$ penstock version\n```\n",
        "<!-- not run: needs root -->\n\n```sh\nreboot\n```\n",
        "Indented:\n\n    penstock version\n",
    ],
)
def test_code_that_nothing_runs_is_found(page: str) -> None:
    assert faults_of(page)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "raise RuntimeError\n"),
        ("python", "def test_fails():\n    assert False\n"),
        ("sh", "false | true\n"),
        ("toml", 'flush = "sometimes"\n'),
        ("json", '{"another": 1}\n'),
    ],
)
def test_a_block_that_does_not_work_is_found(
    language: str, text: str, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    printing = Block(1, "sh", "echo '{\"one\": 1}'\n", "")
    with pytest.raises(AssertionError):
        read([printing, Block(4, language, text, "")], shared_server, tmp_path)
