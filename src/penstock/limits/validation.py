"""The limits of looking into what producers send, before it is stored."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import KIB, MIB, Limit

VALIDATION_THREADS: Final = Limit(
    2,
    "requests of producers that are looked into in threads at the same time",
    protects="memory from many batches that inflate at once, and the processor",
    when_hit="the next one waits",
)

VALIDATED_AT_ONCE_BYTES: Final = Limit(
    2 * MIB,
    "bytes, not compressed, of one request that are looked into on the event loop: about three "
    "milliseconds at most",
    protects="other clients' time",
    when_hit="the request is looked into in a thread",
)

INFLATED_AT_ONCE_BYTES: Final = Limit(
    256 * KIB,
    "bytes that the batches of one request inflate to on the event loop: about a millisecond",
    protects="other clients' time",
    when_hit="the request is looked into in a thread",
)

COMPRESSED_AT_ONCE_BYTES: Final = Limit(
    16 * KIB,
    "bytes of the compressed batches of one request that are inflated on the event loop, after a "
    "look at what they inflate to",
    protects="other clients' time",
    when_hit="the request is looked into in a thread",
)

RECOMPRESSED_BYTES: Final = Limit(
    8 * MIB,
    "bytes of batches that one request has put into the codecs of their topics, and that are not "
    "written yet",
    protects="memory from many small batches of one request that inflate to much",
    when_hit="the request's next batch is looked at when these are written",
)
