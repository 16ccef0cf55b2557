"""The pipeline that a table is written by, kept with the table for those who read it."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

from penstock.pipeline.jobs.config import DefinitionError, PipelineConfig
from penstock.pipeline.tables.interface import state_folder
from penstock.pipeline.values.options import is_schema_file

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME: Final = "pipeline.json"


def record(config: PipelineConfig) -> None:
    """Keep a pipeline in its table's folder, which exists."""
    parsing = config.parsing
    if parsing is not None and is_schema_file(file := Path(parsing.schema)):
        config = replace(config, parsing=replace(parsing, schema=str(file.absolute())))
    file = state_folder(config.table) / _NAME
    draft = file.with_suffix(".draft")
    # The URL of a registry may hold a password.
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(config), default=lambda path: str(path.absolute())) + "\n")
    draft.replace(file)


def recorded(table: Path) -> PipelineConfig:
    """Return the pipeline by which a table was written last. Raises DefinitionError."""
    file = state_folder(table) / _NAME
    try:
        stored: dict[str, Any] = dict(json.loads(file.read_bytes()))
        config: PipelineConfig = _made(PipelineConfig, stored)
    except FileNotFoundError:
        raise DefinitionError(
            f"{table} does not say which pipeline writes it ({file} is missing): name the folder "
            "of a pipeline's table, or run its pipeline once with this version of Penstock"
        ) from None
    except OSError as error:
        raise DefinitionError(f"{file} can't be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise DefinitionError(
            f"{file} is of another version of Penstock, or damaged ({error}): run the pipeline "
            "once with this one"
        ) from error
    return replace(config, table=table)


def _made(kind: Any, stored: Any) -> Any:
    """Return a value of a type of `PipelineConfig` from what JSON keeps of it."""
    if stored is None:
        return None
    if get_origin(kind) is tuple:
        inner, *_ = get_args(kind)
        return tuple(_made(inner, each) for each in stored)
    if get_args(kind):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        make: Callable[..., Any] = kind  # type: ignore[assignment]
        return make(**{name: _made(hints[name], each) for name, each in dict(stored).items()})
    return kind(stored) if issubclass(kind, (Path, StrEnum)) else stored
