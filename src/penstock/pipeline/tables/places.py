"""Where a table lies: a local folder, or an object store."""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.pipeline.tables.interface import TableError
from penstock.pipeline.tables.storage import Folder, local_folder
from penstock.pipeline.tables.stores import store_of

if TYPE_CHECKING:
    from penstock.pipeline.tables.stores import Store

_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
"""In the body of errors."""

_PATIENCE: Final = timedelta(seconds=10)
"""How long the first look at a store goes on where nothing answers."""


@dataclass(frozen=True)
class Place:
    """Where a table lies."""

    uri: str
    """An absolute path, or a URL."""
    folder: Folder
    local: Path | None
    """The folder, where it is a local one."""
    store: Store | None
    """What it is in otherwise."""

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    def holds_parquet(self) -> bool:
        """Whether there are Parquet files that readers would take for part of a table."""
        names = (name for name, _ in self.folder.found())
        return any(name.endswith(".parquet") and not name.startswith("_") for name in names)

    def check(self) -> None:
        """Have a store show that it can be written, and that it keeps the first of two writers.

        Raises TableError.
        """
        if self.store is None:
            return
        try:
            import obstore  # noqa: PLC0415
            from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415
            from obstore.store import from_url  # noqa: PLC0415
        except ModuleNotFoundError as missing:
            raise TableError(f"{missing}: pip install 'penstock-broker[tables]'") from missing
        probe = f"_penstock/probe-{uuid.uuid4().hex}"
        try:
            settings: Any = {name.lower(): value for name, value in self.store.settings.items()}
            store = from_url(
                self.uri,
                config=settings,
                client_options={"allow_http": self._is_plain(), "connect_timeout": _PATIENCE},
                retry_config={"max_retries": 2, "retry_timeout": _PATIENCE},
            )
            obstore.put(store, probe, b"", mode="create")
            try:
                obstore.put(store, probe, b"", mode="create")
            except AlreadyExistsError:
                pass
            else:
                raise TableError(
                    f"the store of {self.uri} lets a second writer replace what a first one wrote: "
                    "it has to know If-None-Match, as S3 and Azure do"
                )
            finally:
                obstore.delete(store, probe)
        except (BaseError, OSError, ValueError) as error:
            raise TableError(
                f"{self.uri} can't be written: {_reason(error)}. The bucket or container has to be "
                f"there; {', '.join(self.store.names)} of the environment say how its store is "
                "reached"
            ) from error

    def delta_options(self) -> dict[str, str]:
        """Return what deltalake is to know of the store."""
        plain = {"allow_http": "true"} if self._is_plain() else {}
        return {} if self.store is None else {**self.store.settings, **plain}

    def _is_plain(self) -> bool:
        return self.store is not None and self.store.endpoint.startswith("http://")


def place_of(location: str) -> Place:
    """Return where a table lies; raises TableError where there is no way to."""
    try:
        location.encode()
    except UnicodeEncodeError as error:
        raise TableError(
            f"{os.fsencode(location)!r} is not UTF-8, as names of tables have to be: rename the "
            "folder"
        ) from error
    if not is_remote(location):
        path = Path(location).absolute()
        return Place(str(path), local_folder(path), path, None)
    uri = location.rstrip("/")
    store, inside = store_of(uri)
    return Place(uri, Folder(store.filesystem(), inside), None, store)


def is_remote(location: str) -> bool:
    """Whether a table lies in an object store."""
    return "://" in location


def state_name(location: str) -> str:
    """Return what the folder is called in which a table in an object store has its run's state."""
    return f"{location.rstrip('/').rpartition('/')[2]}-state"


def _reason(error: Exception) -> str:
    """Return the store's own word for what is wrong, or what became of the request."""
    code = _CODE.search(str(error))
    return f"the store says {code[1]}" if code else str(error).strip().splitlines()[0]
