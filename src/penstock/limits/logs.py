"""What logs may cost that are opened, looked at, checkpointed and deleted from."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import KIB, MIB, Limit

AGED_SEGMENT_BYTES: Final = Limit(
    64 * KIB,
    "bytes of a segment that ends because its messages' own times span segment_ms",
    protects="files and memory from producers that give each message a much later time",
    when_hit="the segment goes on until it is as old by the broker's clock, or has so many bytes",
)

SEGMENT_MS_LEAST: Final = Limit(
    1_000,
    "ms from a segment's beginning to its end by its age, whatever segment_ms says",
    protects="files and memory from a topic that is told to begin a segment each millisecond",
    when_hit="the segment goes on until it is that old",
)

WRITE_AT_ONCE_BYTES: Final = Limit(
    256 * KIB,
    "bytes that the event loop itself writes to a file system of memory, which no device holds up",
    protects="other clients' time from large writes",
    when_hit="a thread writes them",
)

RESERVE_BYTES: Final = Limit(
    1 << 20,
    "bytes of the disk that are kept while topics have a retention",
    protects="retention from a full disk: to give messages up, the new beginning is written first",
    when_hit="they are given back to the disk, and taken again once there is room",
)

RANGE_LEASE_SECONDS: Final = Limit(
    3_600,
    "seconds for which a pipeline has what it reads kept from retention, unless it asks again",
    protects="the disk from pipelines that ended without a word",
    when_hit="what is due goes",
)

RANGE_HELD_SECONDS: Final = Limit(
    86_400,
    "seconds for which pipelines may hold back what is due of a partition",
    protects="the disk from clients that hold what they never read",
    when_hit="all goes that is due, and only then can anything be held again",
)

RANGE_LEASES: Final = Limit(
    10_000,
    "partitions that pipelines hold, each counted once for each holder",
    protects="memory",
    when_hit="more are refused, and what is due of them goes",
)

RANGE_HOLDER_CHARACTERS: Final = Limit(
    100,
    "characters of the name of who holds something",
    protects="memory",
    when_hit="it is refused",
)

SEGMENTS_TRIMMED_TOGETHER: Final = Limit(
    100,
    "segments that retention removes in one step",
    protects="flushes of other logs from a log of which very much is due at once",
    when_hit="the next segments are removed when these are gone",
)

SETTLING_SECONDS: Final = Limit(
    1,
    "seconds",
    protects="who asks for the end of a log from a slow disk",
    when_hit="the end is before what is not safe yet",
)

LOGS_OPENED_TOGETHER: Final = Limit(
    16,
    "logs",
    protects="other requests from one that needs every log of the broker for the first time",
    when_hit="the next logs are opened when these are open",
)

LOGS_MEASURED_TOGETHER: Final = Limit(
    50,
    "closed logs that are looked at in one visit of a thread, for a request about their sizes",
    protects="requests that have a log opened from one about all the logs of the broker",
    when_hit="the next logs are looked at when these were",
)

LOG_OPEN_RETRY_SECONDS: Final = Limit(
    1,
    "seconds",
    protects="disk and log file from clients that keep asking for a log that can't be opened",
    when_hit="the error of the last try is given again",
)

CHECKPOINT_STATES: Final = Limit(
    64,
    "owners of state in the checkpoint of one log",
    protects="a start from a checkpoint file that no release has written",
    when_hit="the file counts as damaged, and the log is read from its beginning",
)

CHECKPOINT_STATE_APART_BYTES: Final = Limit(
    64 * KIB,
    "bytes of one owner's state that are written with each checkpoint of a log",
    protects="the disk from states that are large and seldom change",
    when_hit="the state is in a file of its own, which is written when it has changed",
)

CHECKPOINT_STATE_BYTES: Final = Limit(
    64 * MIB,
    "bytes of one owner's state in the checkpoint of a log",
    protects="memory and the time that a checkpoint takes",
    when_hit="the state of the checkpoint before is kept, and what came since is replayed",
)
