"""Segments, indexes, flush and recovery of one partition's log."""

from penstock.log.commit import Flusher
from penstock.log.config import LogConfig
from penstock.log.errors import (
    CorruptBatchError,
    InvalidBatchError,
    LogClosedError,
    LogError,
    LogFailedError,
    LogReadError,
    OffsetOutOfRangeError,
)
from penstock.log.files import File, FileSystem, RealFileSystem
from penstock.log.log import Log
from penstock.log.reader import read_range
from penstock.log.recovery import RecoveryReport

__all__ = [
    "CorruptBatchError",
    "File",
    "FileSystem",
    "Flusher",
    "InvalidBatchError",
    "Log",
    "LogClosedError",
    "LogConfig",
    "LogError",
    "LogFailedError",
    "LogReadError",
    "OffsetOutOfRangeError",
    "RealFileSystem",
    "RecoveryReport",
    "read_range",
]
