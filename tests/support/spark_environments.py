"""The Pythons and Sparks that the pipeline is tried with: `make interop-spark` makes them.

    python -m spark_environments

Each is a virtual environment with what Penstock needs for Spark, tables and schemas, and without
Penstock itself: that is found by PYTHONPATH, and is missing where there is none.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "places"
SOURCE = ROOT / "src"
EXTRAS = ("spark", "schemas", "tables")
PART = re.compile(r"penstock-broker\[([\w,-]+)\]")


@dataclass(frozen=True)
class Environment:
    """A Python, and the Spark in it."""

    python: str
    spark: str

    @property
    def name(self) -> str:
        return f"python{self.python}-spark{self.spark}"

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def interpreter(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def is_ready(self) -> bool:
        return self._marker.exists() and self._marker.read_text() == self._wanted

    @property
    def _marker(self) -> Path:
        return self.folder / "requirements.sha256"

    @property
    def _wanted(self) -> str:
        return hashlib.sha256("\n".join(self._requirements()).encode()).hexdigest()

    def make(self) -> None:
        """Install it anew. Raises EnvironmentMissingError where this machine lacks its Python."""
        base = found_python(self.python)
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run([base, "-m", "venv", self.folder], check=True)
        pip = [self.interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *self._requirements()], check=True)
        self._marker.write_text(self._wanted)

    def _requirements(self) -> list[str]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        return [*sorted(requirements(project)), f"pyspark[connect]=={self.spark}.*"]


ENVIRONMENTS = (Environment("3.11", "4.2"), Environment("3.12", "4.3"), Environment("3.13", "4.3"))


class EnvironmentMissingError(Exception):
    """An environment can't be made; the message says what to install."""


def requirements(project: dict[str, Any], extras: tuple[str, ...] = EXTRAS) -> set[str]:
    """Return what Penstock needs with these extras, its own ones followed."""
    found = set(project["dependencies"])
    for extra in extras:
        for each in project["optional-dependencies"][extra]:
            own = PART.fullmatch(each)
            found |= requirements(project, tuple(own[1].split(","))) if own else {each}
    return found


def found_python(version: str) -> Path:
    """Return a Python of this version that can make environments."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for path in filter(None, [shutil.which(f"python{version}"), *kept]):
        trial = subprocess.run([path, "-c", "import ensurepip"], check=False, capture_output=True)
        if trial.returncode == 0:
            return Path(path)
    raise EnvironmentMissingError(
        f"there is no Python {version} with venv: install it so that `python{version}` is found, "
        f"by `pyenv install {version}` or, on Debian, apt-get install python{version}-venv"
    )


def main() -> None:
    for each in ENVIRONMENTS:
        if each.is_ready:
            continue
        sys.stdout.write(f"Installing into {each.folder}, once; this takes some minutes.\n")
        sys.stdout.flush()
        try:
            each.make()
        except EnvironmentMissingError as error:
            sys.exit(str(error))
        except subprocess.CalledProcessError as error:
            sys.exit(f"{each.folder} could not be made, see above: {error}")


if __name__ == "__main__":
    main()
