"""Where a table lies: a local folder, or an object store that is spoken to as S3."""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from pyarrow import fs

from penstock.pipeline.tables.interface import TableError
from penstock.pipeline.tables.storage import Folder, local_folder

_SETTINGS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
)
"""What the environment says of an object store, by AWS's own names."""

_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
"""In the body of S3's errors."""

_PATIENCE: Final = timedelta(seconds=10)
"""How long the first look at a store goes on where nothing answers."""


@dataclass(frozen=True)
class Place:
    """Where a table lies."""

    uri: str
    """An absolute path, or `s3://bucket/path`."""
    folder: Folder
    local: Path | None
    """The folder, where it is a local one."""
    settings: dict[str, str]
    """Those of the environment that are set."""

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
        if self.local is not None:
            return
        try:
            import obstore  # noqa: PLC0415
            from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415
            from obstore.store import S3Store  # noqa: PLC0415
        except ModuleNotFoundError as missing:
            raise TableError(f"{missing}: pip install 'penstock-broker[tables]'") from missing
        probe = f"_penstock/probe-{uuid.uuid4().hex}"
        try:
            store = S3Store.from_url(
                self.uri,
                config={name.lower(): value for name, value in self.settings.items()},  # type: ignore[arg-type]
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
                    "it has to know If-None-Match, as S3 does"
                )
            finally:
                obstore.delete(store, probe)
        except (BaseError, OSError, ValueError) as error:
            raise TableError(
                f"{self.uri} can't be written: {_reason(error)}. The bucket has to be there; "
                f"{', '.join(_SETTINGS[:2])}, AWS_REGION and AWS_ENDPOINT_URL of the environment "
                "say how its store is reached"
            ) from error

    def delta_options(self) -> dict[str, str]:
        """Return what deltalake is to know of the store."""
        plain = {"AWS_ALLOW_HTTP": "true"} if self._is_plain() else {}
        return {} if self.local is not None else {**self.settings, **plain}

    def _is_plain(self) -> bool:
        return self.settings.get("AWS_ENDPOINT_URL", "").startswith("http://")


def place_of(location: str) -> Place:
    """Return where a table lies; raises TableError where there is no way to."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        path = Path(location).absolute()
        return Place(str(path), local_folder(path), path, {})
    bucket, _, path_below = rest.rstrip("/").partition("/")
    if scheme != "s3" or not bucket or not path_below:
        raise TableError(
            f"{location} is no place for a table: it is a local folder, or s3://bucket/path"
        )
    settings = {name: os.environ[name] for name in _SETTINGS if os.environ.get(name)}
    store = fs.S3FileSystem(
        access_key=settings.get("AWS_ACCESS_KEY_ID"),
        secret_key=settings.get("AWS_SECRET_ACCESS_KEY"),
        session_token=settings.get("AWS_SESSION_TOKEN"),
        region=settings.get("AWS_REGION") or settings.get("AWS_DEFAULT_REGION"),
        endpoint_override=settings.get("AWS_ENDPOINT_URL"),
    )
    return Place(location.rstrip("/"), Folder(store, f"{bucket}/{path_below}"), None, settings)


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
