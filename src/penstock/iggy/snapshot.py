"""What the broker and its machine are doing, in an archive of text files for a report.

Sections and their files are called as iggy-server calls them. Command lines of processes and the
password stay out: who reads a report is not who may log in.
"""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import fields
from enum import IntEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.iggy import host
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.limits import IGGY_SNAPSHOT_LINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.broker.broker import Broker
    from penstock.broker.settings import BrokerSettings


class Section(IntEnum):
    """A file of the archive."""

    FILESYSTEM_OVERVIEW = 1
    PROCESS_LIST = 2
    RESOURCE_USAGE = 3
    TEST = 4
    SERVER_LOGS = 5
    SERVER_CONFIG = 6


_ALL: Final = 100
_COMPRESSIONS: Final[Mapping[int, int]] = {
    1: zipfile.ZIP_STORED,
    2: zipfile.ZIP_DEFLATED,
    3: zipfile.ZIP_BZIP2,
    5: zipfile.ZIP_LZMA,
}
_NOT_MADE: Final = frozenset({4, 6})
"""zstd and xz."""
_SECRET: Final = "iggy_password"  # noqa: S105  # a setting's name


def compression_of(number: int) -> int:
    """Return the method of `zipfile` that a client means; raises IggyError."""
    if number in _NOT_MADE:
        raise IggyError(ErrorCode.FEATURE_UNAVAILABLE, f"compression {number} of a snapshot")
    if number not in _COMPRESSIONS:
        raise IggyError(ErrorCode.INVALID_COMMAND, f"compression {number} of a snapshot")
    return _COMPRESSIONS[number]


def sections_of(numbers: bytes) -> list[Section]:
    """Return what is asked for, each once; raises IggyError."""
    if numbers == bytes([_ALL]):
        return [each for each in Section if each is not Section.TEST]
    try:
        return [Section(number) for number in dict.fromkeys(numbers)]
    except ValueError as error:
        raise IggyError(ErrorCode.INVALID_COMMAND, "a section of a snapshot") from error


def collect(sections: Sequence[Section], compression: int, broker: Broker) -> bytes:
    """Return the archive. Blocks."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for section in sections:
            lines = list(islice(_lines(section, broker), IGGY_SNAPSHOT_LINES + 1))
            if len(lines) > IGGY_SNAPSHOT_LINES:
                lines[-1] = "and more"
            archive.writestr(f"{section.name.lower()}.txt", "".join(f"{each}\n" for each in lines))
    return made.getvalue()


def _lines(section: Section, broker: Broker) -> Iterator[str]:
    match section:
        case Section.FILESYSTEM_OVERVIEW:
            return _files(broker.data_folder)
        case Section.PROCESS_LIST:
            return _processes()
        case Section.RESOURCE_USAGE:
            return _usage(broker.data_folder)
        case Section.SERVER_CONFIG:
            return _settings(broker.settings)
        case Section.SERVER_LOGS:
            return iter(["The broker writes its log to standard error, and keeps none of it."])
        case Section.TEST:
            return iter(["test"])


def _files(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            try:
                size = file.stat().st_size
            except OSError:
                continue  # It was removed meanwhile.
            inside = os.fsencode(file.relative_to(folder)).decode(errors="replace")
            yield f"{size:>15} {inside}"


def _processes() -> Iterator[str]:
    for each in sorted(Path("/proc").glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            status = (each / "status").read_text(errors="replace").splitlines()
        except OSError:
            continue  # It has ended meanwhile.
        told = dict(line.split(":", 1) for line in status if ":" in line)
        words = [told.get(name, "").strip() for name in ("State", "VmRSS", "Threads", "Name")]
        yield " ".join([each.name, *words])


def _usage(folder: Path) -> Iterator[str]:
    for about in (host.machine(folder), host.process()):
        yield from (f"{name} = {value}" for name, value in about._asdict().items())


def _settings(settings: BrokerSettings) -> Iterator[str]:
    for each in fields(settings):
        if each.name != _SECRET:
            yield f"{each.name} = {getattr(settings, each.name)}"
