"""`penstock serve`: run a broker until it is told to stop."""

from __future__ import annotations

import errno
import gc
import inspect
import logging
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from penstock.cli.failure import CommandError, UsageError
from penstock.cli.lines_to_try import heading, line_to_try, read_all
from penstock.cli.output import Format, FormatOption, OutputClosed, print_json, print_line
from penstock.limits import MIB
from penstock.server.config import SETTINGS, Config, ConfigError, Setting, load_config

if TYPE_CHECKING:
    from penstock.server.serve import Ready

START_BYTES: Final = MIB
"""More than a start writes: the number of the start, and the database's own files."""

_NO_THREAD: Final = "can't start new thread"
"""What Python's RuntimeError says, which has no class of its own."""

_ConfigFile: Final = typer.Option(
    "--config",
    "-c",
    metavar="FILE",
    help="Settings in TOML; without it ./penstock.toml is read when there is one.",
    show_default=False,
)


def serve_command(
    config: Path | None = None, output: Format = Format.TABLE, **flags: str | None
) -> None:
    """Run a broker for Kafka, Pulsar and Iggy clients until Ctrl-C or SIGTERM.

    Every flag is also an environment variable (--kafka-port is PENSTOCK_KAFKA_PORT) and a key of
    penstock.toml (kafka_port). A flag wins over the environment, the environment over the file,
    the file over the default.

    The first Ctrl-C answers what was asked and stops; a second one ends at once (exit code 130).
    """
    began = time.monotonic()
    given = {key: text for key, text in flags.items() if text is not None}
    try:
        settings = load_config(given, os.environ, config)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    _log_to_stderr(settings.log_level)
    _serve(settings, began, output)


def _serve(settings: Config, began: float, output: Format) -> None:
    # Until `Garbage.start`: what a start makes stays.
    gc.disable()
    import uvloop

    from penstock.broker.errors import DataFolderError
    from penstock.metadata.errors import MetadataError
    from penstock.records.kernels.library import KernelsError
    from penstock.server.listeners import ListenError
    from penstock.server.serve import serve

    def started(ready: Ready) -> None:
        with suppress(OutputClosed):  # Clients are served whether somebody reads this or not.
            _announce(ready, time.monotonic() - began, output)

    try:
        uvloop.run(serve(settings, started))
    except (DataFolderError, KernelsError, ListenError) as error:
        raise CommandError(str(error)) from error
    except (MetadataError, OSError) as error:
        raise CommandError(_failure(settings.data_folder, error)) from error
    except RuntimeError as error:
        if str(error) != _NO_THREAD:
            raise
        raise CommandError(
            "the system starts no more threads: raise the limit of processes (`ulimit -u`, the "
            "control group's pids.max) or of memory (`ulimit -v`) and start again"
        ) from error


def _failure(data_folder: Path, error: Exception) -> str:
    """Return what to tell of a database or a file that failed: a full disk is what does most."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return f"too many files are open: raise `ulimit -n` and start again ({error})"
    try:
        free = shutil.disk_usage(data_folder).free
    except OSError:
        free = START_BYTES  # There is no such folder, which the error says.
    if free < START_BYTES:
        return (
            f"the disk of the data folder {data_folder} is full: free {START_BYTES // MIB} MiB and "
            f"start again; what is stored was not touched ({error})"
        )
    if isinstance(error, OSError):
        return f"the data folder {data_folder} failed: {error}"
    return str(error)


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s"
    )


def _announce(ready: Ready, seconds: float, output: Format) -> None:
    if output is Format.JSON:
        print_json(
            {
                "listeners": {address.protocol: str(address) for address in ready.addresses},
                "data_folder": str(ready.config.data_folder.resolve()),
                "pid": os.getpid(),
                "seconds": round(seconds, 3),
            }
        )
        return
    print_line(f"Penstock is ready. Data is in {ready.config.data_folder.resolve()}\n")
    for address in ready.addresses:
        line = line_to_try(address, ready.config.iggy_user, _shown_password(ready.config))
        print_line(f"{heading(address)}\n{line}\n")
    print_line(f"Read what they wrote:\n{read_all(ready.addresses[0])}\n\nCtrl-C stops it.")


def _shown_password(config: Config) -> str:
    return config.iggy_password if config.iggy_password == Config.iggy_password else "PASSWORD"


def _flag(setting: Setting) -> inspect.Parameter:
    shown = "empty" if setting.default == "" else str(setting.default)
    option = typer.Option(
        setting.flag,
        metavar="TEXT",
        help=f"{setting.help} [{setting.variable}; default: {shown.lower()}]",
        show_default=False,
    )
    return inspect.Parameter(
        setting.key,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, option],
    )


def _declare_flags() -> None:
    # Typer reads a command's flags from its signature; one table must not be typed out twice.
    parameters = [
        inspect.Parameter(
            "config",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[Path | None, _ConfigFile],
        ),
        inspect.Parameter(
            "output",
            inspect.Parameter.KEYWORD_ONLY,
            default=Format.TABLE,
            annotation=Annotated[Format, FormatOption],
        ),
        *(_flag(setting) for setting in SETTINGS),
    ]
    command: Any = serve_command
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {item.name: item.annotation for item in parameters}


_declare_flags()
