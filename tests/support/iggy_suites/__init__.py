"""The published test suites of apache-iggy's Python clients, each run with its own wheel.

`python -m iggy_suites` fetches wheels and source archives, in which the suites are, and the client
of Java.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

from versus.peers import maven

CACHE: Final = Path(os.environ.get("OLDER_IGGY_CLIENTS", "build/iggy-clients")).absolute()
RELEASES: Final = ("0.5.0", "0.6.0", "0.7.0", "0.8.0", "0.9.0")
RUN_SECONDS: Final = 1800
_JAVA: Final = ("java-0.8.0", ["org.apache.iggy:iggy:0.8.0"])
_HERE: Final = Path(__file__).parent
_INSIDE: Final = Path("foreign") / "python"
_NEEDED: Final = ("pytest", "pytest-asyncio", "pytest-timeout")
_INI: Final = """\
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = session
asyncio_default_test_loop_scope = session
timeout = 60
markers =
    integration: needs a server
    unit: needs none
"""


class Outcome(NamedTuple):
    """The tests of a suite by what became of them."""

    passed: set[str]
    failed: set[str]
    output: str


def is_at_hand(release: str) -> bool:
    """Whether `prepare` has done its work."""
    return _python(release).exists() and _suite(release).exists()


def prepare(release: str) -> None:
    """Install a wheel and what its suite needs, and unpack the suite."""
    folder = CACHE / release
    if not (folder / "bin" / "pytest").exists():
        _run(sys.executable, "-m", "venv", str(folder))
        _run(
            str(_python(release)), "-m", "pip", "install", "-q", f"apache-iggy=={release}", *_NEEDED
        )
    if not _suite(release).exists():
        _run(
            *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"),
            *(
                "--no-binary",
                "apache-iggy",
                "-d",
                str(folder / "source"),
                f"apache-iggy=={release}",
            ),
            PYTHONPATH=str(_HERE),
        )
        (archive,) = (folder / "source").glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder / "source", filter="data")
        shutil.copytree(
            archive.with_suffix("").with_suffix("") / _INSIDE / "tests", _suite(release)
        )
        (_suite(release).parent / "pytest.ini").write_text(_INI)


def run(release: str, address: str) -> Outcome:
    """Run a suite against a broker that holds nothing; those that need a container are left out."""
    host, _, port = address.rpartition(":")
    ended = subprocess.run(
        [
            *(
                _python(release),
                "-m",
                "pytest",
                "tests",
                "-v",
                "--tb=native",
                "-p",
                "no:cacheprovider",
            ),
            *("--ignore", "tests/test_tls.py"),
        ],
        cwd=_suite(release).parent,
        env=os.environ | {"IGGY_SERVER_HOST": host, "IGGY_SERVER_TCP_PORT": port},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    lines = [line.split() for line in ended.stdout.splitlines() if line.startswith("tests/")]
    named = {
        word: {line[0] for line in lines if word in line[1:2]}
        for word in ("PASSED", "FAILED", "ERROR")
    }
    return Outcome(named["PASSED"], named["FAILED"] | named["ERROR"], ended.stdout)


def prepare_java() -> None:
    """Fetch the client of Java. Raises versus.peers.peer.NotAvailableError."""
    maven.fetch(CACHE, *_JAVA)


def java_libraries() -> str | None:
    """Return the class path of the client of Java; None before it was fetched."""
    folder = CACHE / _JAVA[0]
    return maven.class_path(folder / "libraries") if (folder / "complete").exists() else None


def _python(release: str) -> Path:
    return CACHE / release / "bin" / "python"


def _suite(release: str) -> Path:
    return CACHE / release / "suite" / "tests"


def _run(*command: str, **environment: str) -> None:
    subprocess.run(command, env=os.environ | environment, check=True)
