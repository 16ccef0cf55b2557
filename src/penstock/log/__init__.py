"""One partition's log: what the broker needs of it, and the implementation in local files."""

from penstock.log.batches import Batches
from penstock.log.commit import Flusher
from penstock.log.config import LogConfig
from penstock.log.errors import (
    CorruptBatchError,
    InvalidBatchError,
    LogClosedError,
    LogError,
    LogFailedError,
    LogMissingError,
    LogReadError,
    LogWriteError,
    OffsetOutOfRangeError,
)
from penstock.log.files import File, FileSystem, RealFileSystem
from penstock.log.interface import Log, LogSummary, SavedState
from penstock.log.local import LocalLog
from penstock.log.reader import read_range
from penstock.log.recovery import RecoveryReport
from penstock.log.summary import summarise

__all__ = [
    "Batches",
    "CorruptBatchError",
    "File",
    "FileSystem",
    "Flusher",
    "InvalidBatchError",
    "LocalLog",
    "Log",
    "LogClosedError",
    "LogConfig",
    "LogError",
    "LogFailedError",
    "LogMissingError",
    "LogReadError",
    "LogSummary",
    "LogWriteError",
    "OffsetOutOfRangeError",
    "RealFileSystem",
    "RecoveryReport",
    "SavedState",
    "read_range",
    "summarise",
]
