"""`penstock pipeline`: topics kept as tables."""

from __future__ import annotations

import typer

from penstock.cli.pipeline_backfill import backfill_command
from penstock.cli.pipeline_compact import compact_command
from penstock.cli.pipeline_files import check_command, init_command
from penstock.cli.pipeline_run import run_command
from penstock.cli.pipeline_runs import status_command, stop_command

pipeline_app = typer.Typer(help="Topics as tables, with Spark.", no_args_is_help=True)
pipeline_app.command("run")(run_command)
pipeline_app.command("backfill")(backfill_command)
pipeline_app.command("init")(init_command)
pipeline_app.command("check")(check_command)
pipeline_app.command("compact")(compact_command)
pipeline_app.command("status")(status_command)
pipeline_app.command("stop")(stop_command)
