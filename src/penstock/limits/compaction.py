"""What compaction may cost."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import MIB, Limit

COMPACTION_MAP_BYTES: Final = Limit(
    32 * MIB,
    "bytes of the table of keys and their last offsets while a log is compacted: 786,432 keys",
    protects="memory",
    when_hit="the log is compacted as far as the keys go, and the rest in further passes",
)

COMPACTION_SPAN_BYTES: Final = Limit(
    16 * MIB,
    "bytes that say which messages a later one of their key replaces, a bit for each offset",
    protects="memory",
    when_hit="the log is compacted by 134,217,728 offsets, and the rest in further passes",
)

COMPACTED_IN_THREAD_BYTES: Final = Limit(
    8 * MIB,
    "bytes of segments from which on a log is compacted in a process of its own",
    protects="a core: to start a process takes as long as to compact them",
    when_hit="what is less is compacted in a thread of the broker, unless the process is there",
)

COMPACTED_IN_THREAD_INFLATED_BYTES: Final = Limit(
    8 * MIB,
    "bytes that batches inflate to together while a log is compacted in a thread of the broker",
    protects="the broker's memory, of which a batch takes some four times as much meanwhile",
    when_hit="fewer batches are inflated at a time; one that comes to more by itself has its log "
    "compacted in the process",
)

COMPACTION_INFLATED_BYTES: Final = Limit(
    1024 * MIB,
    "bytes that a log inflates to when it is compacted, whatever its size",
    protects="other logs from one that keeps the cleaner for itself: some seconds",
    when_hit="the log is not compacted if it inflates to COMPACTION_INFLATED_TIMES as much too, "
    "which the broker's log says, and looked at again later",
)

COMPACTION_INFLATED_TIMES: Final = Limit(
    64,
    "times as many bytes as were read of a log, besides those, that it inflates to when it is "
    "compacted",
    protects="other logs from one of which a few bytes inflate to very many",
    when_hit="the log is not compacted, which the broker's log says, and looked at again later",
)

COMPACTION_PROCESS_BYTES: Final = Limit(
    1024 * MIB,
    "bytes that the process takes which compacts: a table of keys and what a batch inflates to",
    protects="memory of the machine",
    when_hit="the log is not compacted, which the broker's log says, and looked at again later",
)

COMPACTED_VIEW_BYTES: Final = Limit(
    8 * MIB,
    "bytes that say what Pulsar's compacted view of a partition leaves out, a bit for each message",
    protects="memory",
    when_hit="all messages behind the first 67,108,864 are in the view",
)

COMPACTION_RETRY_SECONDS: Final = Limit(
    600,
    "seconds after which a log is looked at again that could not be compacted",
    protects="the disk and the log lines from a log with a damaged batch",
    when_hit="the log is compacted as far as before, until then or until its settings change",
)
