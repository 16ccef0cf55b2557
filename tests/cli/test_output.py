"""Tables keep names to the letter, on a terminal and in a pipe."""

from __future__ import annotations

import pytest

from penstock.cli.output import Format, print_rows

LONG = "orders-" * 35
ROWS = [{"topic": LONG, "id": "x" * 100, "partitions": 3}]


def test_a_pipe_gets_a_row_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_rows(ROWS, ["topic", "id", "partitions"], Format.TABLE, empty="")
    head, row = capsys.readouterr().out.splitlines()
    assert row.split() == [LONG, "x" * 100, "3"]
    assert head.split() == ["TOPIC", "ID", "PARTITIONS"]
    assert len(row) < 500


def test_a_narrow_terminal_folds_a_name_and_cuts_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_rows([{"topic": LONG}], ["topic"], Format.TABLE, empty="")
    _, *folded = capsys.readouterr().out.splitlines()
    assert len(folded) > 1
    assert "".join(line.strip() for line in folded) == LONG


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[red]x[/]", "[red]x[/]"),
        ("[/nothing]", "[/nothing]"),
        (":smile:", ":smile:"),
        ("a\x1b[2Jb\nc", r"a\x1b[2Jb\nc"),
    ],
)
def test_a_name_is_neither_markup_nor_commands_to_the_terminal(
    capsys: pytest.CaptureFixture[str], name: str, shown: str
) -> None:
    print_rows([{"group": name}], ["group"], Format.TABLE, empty="")
    assert capsys.readouterr().out.splitlines()[1].strip() == shown
