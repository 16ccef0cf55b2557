"""Stands in for the backend that builds apache-iggy, where pip is to fetch its source archive only.

pip asks a source archive for its metadata before it keeps it; the real backend needs all of the
Rust crates for that answer, some of them from places that are no registry.
"""

from __future__ import annotations

import shutil
from pathlib import Path


def prepare_metadata_for_build_wheel(folder: str, _settings: object = None) -> str:
    """Answer with what the archive says about itself; see PEP 517."""
    about = dict(line.split(": ", 1) for line in Path("PKG-INFO").read_text().splitlines()[:3])
    made = Path(folder) / f"{about['Name'].replace('-', '_')}-{about['Version']}.dist-info"
    made.mkdir()
    shutil.copy("PKG-INFO", made / "METADATA")
    return made.name
