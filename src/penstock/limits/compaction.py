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

COMPACTION_RETRY_SECONDS: Final = Limit(
    600,
    "seconds after which a log is looked at again that could not be compacted",
    protects="the disk and the log lines from a log with a damaged batch",
    when_hit="the log is compacted as far as before, until then or until its settings change",
)

COMPRESSED_RUN_BYTES: Final = Limit(
    1024,
    "bytes of messages that follow one another in a compressed entry of Pulsar, and are compressed "
    "when compaction makes an entry of them",
    protects="a core: to compress them one by one takes longer than all else",
    when_hit="fewer are left uncompressed",
)
