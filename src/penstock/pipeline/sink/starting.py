"""What is looked at before a write has any task: options, columns, and the broker."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.pipeline.sink.epochs.attempt import errors_in_words
from penstock.pipeline.sink.epochs.opening import open_epochs
from penstock.pipeline.sink.errors import SinkError, UnreachableError
from penstock.pipeline.sink.options import SinkOptions, parse
from penstock.pipeline.sink.schema import check_columns
from penstock.pipeline.sink.writers import BatchWriter, StreamWriter, of_application
from penstock.pipeline.sink.writing import check_epoch
from penstock.pipeline.source.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType


def batch_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> BatchWriter:
    """Return the writer of one batch. Raises OptionError and SinkError."""
    parsed = _checked(options, schema, overwrite=overwrite, streaming=False)
    ask_broker(parsed)
    return BatchWriter(parsed)


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> StreamWriter:
    """Return the writer of a stream's batch. Raises OptionError and SinkError.

    It is made for each batch, and once more when that is committed: a broker that does not answer
    now is waited for by those who have something to ask.
    """
    parsed = _checked(options, schema, overwrite=overwrite, streaming=True)
    with suppress(UnreachableError):
        ask_broker(parsed)
    return StreamWriter(parsed)


def _checked(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool, streaming: bool
) -> SinkOptions:
    parsed = parse(options, streaming=streaming)
    if overwrite:
        words = 'outputMode("append")' if streaming else 'mode("append")'
        raise SinkError(f"topics are appended to and can't be overwritten: use {words}")
    check_columns(schema, parsed.topic)
    return parsed


def ask_broker(options: SinkOptions) -> None:
    """Raise SinkError where the broker can't be written to as it is asked to."""
    # One that has answered once may still be making what transactions need.
    ask = Patience(answered=False).ask
    with errors_in_words(options.servers), open_epochs(options, ask) as epochs:
        epochs.check()
        writer = of_application(options)
        if writer is not None:
            check_epoch(writer, options.version, epochs.last(writer))
