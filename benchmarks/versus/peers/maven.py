"""Java programs from their published artifacts, through the ordinary Maven client."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from versus.peers.peer import NotAvailableError

FETCH_SECONDS: Final = 900

_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>versus</groupId>
  <artifactId>{name}</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""
_DEPENDENCY: Final = """\
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
    </dependency>
"""


def pom(name: str, artifacts: list[str]) -> str:
    """A project that depends on `group:artifact:version` each."""
    listed = (_DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
    return _POM.format(name=name, dependencies="".join(listed))


def fetch(cache: Path, name: str, artifacts: list[str]) -> Path:
    """Return a folder with the artifacts and all that they need. Raises NotAvailableError."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise NotAvailableError(f"{program} is not installed")
    folder = cache / name
    libraries = folder / "libraries"
    complete = folder / "complete"
    wanted = "\n".join(artifacts)
    if complete.exists() and complete.read_text() == wanted:
        return libraries
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(pom(name, artifacts))
    command = ["mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={libraries.resolve()}"]
    try:
        ended = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NotAvailableError(f"Maven took more than {FETCH_SECONDS} s") from error
    if ended.returncode != 0:
        said = (ended.stdout + ended.stderr).strip().splitlines()
        raise NotAvailableError(f"Maven can't get {artifacts[0]}: {said[0] if said else ''}")
    complete.write_text(wanted)
    return libraries


def class_path(libraries: Path) -> str:
    return f"{libraries.resolve()}/*"
