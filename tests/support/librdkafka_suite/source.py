"""librdkafka as Debian's source package has it, unpacked and built with its tests, once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

PACKAGE: Final = "librdkafka"
STEP_SECONDS: Final = 1800
WITHOUT: Final = ("--disable-sasl", "--disable-zstd", "--disable-curl")
"""What no test here needs, so that a machine needs no library for it; zstd comes with it."""
PROGRAMS: Final = {
    "apt-get": "this is no Debian: there is no other place that the source is taken from",
    "dpkg-source": "apt-get install dpkg-dev",
    "make": "apt-get install make",
    "g++": "apt-get install g++",
}
INCLUDED: Final = Path("/usr/include")
HEADERS: Final = {
    "zlib.h": "zlib1g-dev",
    "openssl/ssl.h": "libssl-dev",
    "rapidjson/document.h": "rapidjson-dev",
}
"""Without one of these the suite builds, and some tests would leave themselves out."""

_MARK: Final = f"{PACKAGE}-*/tests/test.c"
_TEST: Final = re.compile(r"^ +_TEST\((\w+),((?:[^()]|\([^()]*\))*)\)", re.MULTILINE)
_LEFT_OUT: Final = ("TEST_F_LOCAL", "TEST_F_MANUAL", "TEST_F_KNOWN_ISSUE")


class NotAvailableError(Exception):
    """The suite can't be had on this machine; the message says why, and what to do."""


def obtain(cache: Path) -> Path:
    """Return the folder of the built tests. Raises NotAvailableError."""
    for program, remedy in PROGRAMS.items():
        if shutil.which(program) is None:
            raise NotAvailableError(f"{program} is not installed: {remedy}")
    for header, package in HEADERS.items():
        if not (INCLUDED / header).exists():
            raise NotAvailableError(f"{header} is missing: apt-get install {package}")
    source = _source(cache)
    tests = source / "tests"
    runner = tests / "test-runner"
    if not runner.exists() or is_older_than_headers(runner):
        print(f"Building {source.name} and its tests, once; this takes some minutes.", flush=True)
        runner.unlink(missing_ok=True)
        for made in source.rglob("*.o"):
            made.unlink()
        _step(["./configure", *WITHOUT], source)
        jobs = f"-j{os.cpu_count()}"
        _step(["make", jobs, "libs"], source)
        _step(["make", jobs, "-C", "tests", "build"], source)
    return tests


def is_older_than_headers(runner: Path) -> bool:
    """Whether a header came to the machine since the tests were built, some of which then leave
    themselves out.
    """
    # A package keeps the time at which its files were written, but not that of their inodes.
    built = runner.stat().st_mtime
    return any((INCLUDED / header).stat().st_ctime > built for header in HEADERS)


def declared(tests: Path) -> dict[tuple[str, str], list[str]]:
    """Return the tests that talk to a broker, by their number and scenario.

    A test without one either needs none or brings librdkafka's own imitation of one; what the suite
    knows as broken in itself it leaves out too.
    """
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, words in _TEST.findall((tests / "test.c").read_text()):
        if not any(re.search(rf"\b{flag}\b", words) for flag in _LEFT_OUT):
            scenario = "noautocreate" if '"noautocreate"' in words else "default"
            found[name[:4], scenario].append(name)
    return dict(found)


def _source(cache: Path) -> Path:
    if found := list(cache.glob(_MARK)):
        return max(found).parents[1]
    for folder in ("lists/partial", "cache/archives/partial"):
        (cache / folder).mkdir(parents=True, exist_ok=True)
    (cache / "sources.list").write_text("".join(f"{line}\n" for line in _source_lines()))
    apt = ["apt-get", *(word for key in _apt_settings(cache) for word in ("-o", key))]
    _step([*apt, "update"], cache)
    _step([*apt, "source", PACKAGE], cache)
    return max(cache.glob(_MARK)).parents[1]


def _source_lines() -> list[str]:
    """What apt needs to find sources where this machine takes its packages from."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = sorted({f"deb-src {line}" for line in listed.splitlines() if "debian" in line})
    if not lines:
        raise NotAvailableError("apt knows no Debian archive: run 'apt-get update' once, as root")
    return lines


def _apt_settings(cache: Path) -> list[str]:
    """Lists of its own, so that neither root nor a change of the machine's is needed."""
    return [
        f"Dir::Etc::sourcelist={cache}/sources.list",
        "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::lists={cache}/lists",
        f"Dir::Cache={cache}/cache",
    ]


def _step(command: list[str], folder: Path) -> None:
    # Beside the source: its own `configure` takes a file of this name for a part of itself.
    log = folder.parent / f"{command[0].strip('./')}.log"
    with log.open("ab") as output:
        try:
            code = subprocess.run(
                command,
                cwd=folder,
                stdout=output,
                stderr=output,
                timeout=STEP_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise NotAvailableError(f"{command[0]} took more than {STEP_SECONDS} s") from error
    if code != 0:
        raise NotAvailableError(f"'{' '.join(command)}' failed: its output is in {log}")
