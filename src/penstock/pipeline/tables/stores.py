"""Object stores: what names a place in one, and how each library that speaks to it is told of it.

What the environment says under a store's own names is taken by deltalake and obstore as it is;
pyarrow and pyiceberg have other names for the same.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol
from urllib.parse import SplitResult, urlsplit

from pyarrow import fs

from penstock.pipeline.tables.interface import TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_AZURE_HOST: Final = ".dfs.core.windows.net"


class Store(Protocol):
    """One object store, and what the environment says of it."""

    names: ClassVar[tuple[str, ...]]
    """The variables of the environment, those that most need first."""

    @property
    def settings(self) -> dict[str, str]:
        """What deltalake and obstore are told: those that are set, and what the address says."""

    @property
    def endpoint(self) -> str:
        """Where it is, if it is not where the store's owner has it; empty otherwise."""

    def filesystem(self) -> fs.FileSystem:
        """Return what writes files; pickled to the executors."""

    def iceberg(self) -> dict[str, str]:
        """Return the same as pyiceberg's properties."""


@dataclass(frozen=True)
class S3Store:
    """S3, and what speaks as it does."""

    settings: dict[str, str]
    names: ClassVar[tuple[str, ...]] = (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_SESSION_TOKEN",
        "AWS_DEFAULT_REGION",
    )
    _properties: ClassVar = {
        "AWS_ACCESS_KEY_ID": "s3.access-key-id",
        "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
        "AWS_SESSION_TOKEN": "s3.session-token",
        "AWS_DEFAULT_REGION": "s3.region",
        "AWS_REGION": "s3.region",
        "AWS_ENDPOINT_URL": "s3.endpoint",
    }

    @property
    def endpoint(self) -> str:
        return self.settings.get("AWS_ENDPOINT_URL", "")

    def filesystem(self) -> fs.FileSystem:
        settings = self.settings
        return fs.S3FileSystem(
            access_key=settings.get("AWS_ACCESS_KEY_ID"),
            secret_key=settings.get("AWS_SECRET_ACCESS_KEY"),
            session_token=settings.get("AWS_SESSION_TOKEN"),
            region=settings.get("AWS_REGION") or settings.get("AWS_DEFAULT_REGION"),
            endpoint_override=self.endpoint or None,
        )

    def iceberg(self) -> dict[str, str]:
        return _renamed(self.settings, self._properties)


@dataclass(frozen=True)
class AzureStore:
    """Azure's Data Lake Storage, of which an address names the account."""

    settings: dict[str, str]
    names: ClassVar[tuple[str, ...]] = (
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AZURE_TENANT_ID",
        "AZURE_STORAGE_ENDPOINT",
    )
    _arguments: ClassVar = {
        "AZURE_STORAGE_ACCOUNT_NAME": "account_name",
        "AZURE_STORAGE_ACCOUNT_KEY": "account_key",
        "AZURE_STORAGE_SAS_TOKEN": "sas_token",
        "AZURE_CLIENT_ID": "client_id",
        "AZURE_CLIENT_SECRET": "client_secret",
        "AZURE_TENANT_ID": "tenant_id",
    }

    @property
    def endpoint(self) -> str:
        return self.settings.get("AZURE_STORAGE_ENDPOINT", "")

    def filesystem(self) -> fs.FileSystem:
        return fs.AzureFileSystem(**self._said())

    def iceberg(self) -> dict[str, str]:
        return {f"adls.{name.replace('_', '-')}": value for name, value in self._said().items()}

    def _said(self) -> dict[str, str]:
        """Return what pyarrow is told, by the names of its arguments."""
        said = _renamed(self.settings, self._arguments)
        if self.endpoint:
            scheme, host = urlsplit(self.endpoint)[:2]
            for service in ("blob", "dfs"):
                said |= {f"{service}_storage_authority": host, f"{service}_storage_scheme": scheme}
        return said


def store_of(uri: str) -> tuple[Store, str]:
    """Return the store of an address, and the path in it. Raises TableError."""
    try:
        parts = urlsplit(uri)
        path = parts.path.strip("/")
        if parts.scheme == "s3" and parts.netloc and path:
            return S3Store(_set(S3Store.names)), f"{parts.netloc}/{path}"
        if parts.scheme == "abfss" and path and (account := _account(parts)):
            settings = {"AZURE_STORAGE_ACCOUNT_NAME": account, **_set(AzureStore.names)}
            _check_key(settings.get("AZURE_STORAGE_ACCOUNT_KEY", ""))
            return AzureStore(settings), f"{parts.username}/{path}"
    except ValueError:
        pass  # It is no URL.
    raise TableError(
        f"{uri} is no place for a table: it is a local folder, s3://bucket/path or "
        f"abfss://container@account{_AZURE_HOST}/path"
    )


def _account(parts: SplitResult) -> str:
    host = parts.hostname or ""
    known = parts.username and not parts.password and host.endswith(_AZURE_HOST)
    return host.removesuffix(_AZURE_HOST) if known else ""


def _check_key(key: str) -> None:
    """Raise TableError for a key that pyarrow would end the process for."""
    try:
        base64.b64decode(key, validate=True)
    except ValueError:
        raise TableError(
            "AZURE_STORAGE_ACCOUNT_KEY is no key of a storage account: those are in base64"
        ) from None


def _set(names: Iterable[str]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _renamed(settings: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {name: settings[theirs] for theirs, name in names.items() if theirs in settings}
