"""Goal: what passes of librdkafka's own tests is counted rightly; its list and page agree."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from librdkafka_suite import runs, source
from librdkafka_suite.__main__ import PASSING, ROOT

PAGE = ROOT / "docs" / "interop-librdkafka.md"

DECLARED = """\
_TEST_DECL(0001_one);
struct test tests[] = {
    _TEST(0000_unittests, TEST_F_LOCAL, _THRES(.ucpu = 100.0)),
    _TEST(0001_one, 0),
    _TEST(0001_one_more,
          0,
          TEST_BRKVER(0, 9, 0, 0),
          .scenario = "noautocreate"),
    _TEST(0002_broken, TEST_F_KNOWN_ISSUE, .extra = "always"),
    _TEST(0003_windows, TEST_F_KNOWN_ISSUE_WIN32),
    _TEST(0004_manual, TEST_F_MANUAL),
};
"""
OUTPUT = """\
\x1b[31m### Test "0002_two (a_part:12: with words)" failed at test.c:12:fail() at Sun Nov 22: ###
it went wrong
\x1b[36m[0004_four / 15.2s] \x1b[32m====== Test 0004_four PASSED ======\x1b[0m
### Test "0003_three" failed at test.c:12:fail() at Sun Nov 22: ###
it went wrong, too
|\x1b[32m <MAIN>                           |     PASSED |   0.200s \x1b[0m|
|\x1b[32m 0001_one                         |     PASSED |   0.001s \x1b[0m|
|\x1b[36m 0001_local                       |    SKIPPED |   0.000s \x1b[0m|\x1b[36m Filtered\x1b[0m
|\x1b[31m 0003_three                       |     FAILED |   1.000s \x1b[0m|\x1b[31m wrong\x1b[0m
"""


def test_tests_that_talk_to_a_broker_are_found(tmp_path: Path) -> None:
    (tmp_path / "test.c").write_text(DECLARED)
    assert source.declared(tmp_path) == {
        ("0001", "default"): ["0001_one"],
        ("0001", "noautocreate"): ["0001_one_more"],
        ("0003", "default"): ["0003_windows"],
    }


def test_what_was_built_without_a_header_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "INCLUDED", tmp_path)
    monkeypatch.setattr(source, "HEADERS", {"zlib.h": "zlib1g-dev"})
    (tmp_path / "zlib.h").touch()
    runner = tmp_path / "test-runner"
    runner.touch()
    os.utime(runner, (0, 0))
    assert source.is_older_than_headers(runner)
    os.utime(runner, (1 << 33, 1 << 33))
    assert not source.is_older_than_headers(runner)


def test_what_became_of_each_is_read() -> None:
    """The suite may end before its summary names a test."""
    assert runs.read(OUTPUT) == {
        "0001_one": runs.Result("0001_one", "PASSED", ""),
        "0001_local": runs.Result("0001_local", "SKIPPED", "Filtered"),
        "0002_two": runs.Result("0002_two", "FAILED", "it went wrong"),
        "0004_four": runs.Result("0004_four", "PASSED", ""),
        "0003_three": runs.Result("0003_three", "FAILED", "wrong"),
    }


def test_a_test_is_in_the_list_or_on_the_page() -> None:
    listed = PASSING.read_text().split()
    assert listed == sorted(set(listed))
    explained = re.findall(r"^\| (\d{4}_\w+)", PAGE.read_text(), re.MULTILINE)
    assert explained
    assert not set(explained) & set(listed)
