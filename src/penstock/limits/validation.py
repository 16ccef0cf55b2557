"""The limits of looking into what producers send, before it is stored."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import KIB, MIB, Limit

LOOKS_OF_SMALL_BYTES: Final = Limit(
    1 * MIB,
    "bytes, compressed and inflated, of one request in the first of three threads in which "
    "requests of producers are looked into: about three milliseconds",
    protects="producers of small requests from those of large ones",
    when_hit="the request waits for one of the two others",
)

LOOKS_OF_MEDIUM_BYTES: Final = Limit(
    16 * MIB,
    "bytes, compressed and inflated, of one request in the second of these threads",
    protects="producers of ordinary requests from those whose requests inflate to very much, and "
    "memory from many of these at once",
    when_hit="the request waits for the third one",
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
