"""The limits around the budget for memory, and of what receives and keeps."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import KIB, MIB, Limit

MEMORY_BYTES_LEAST: Final = Limit(
    256 * MIB,
    "bytes of the budget for memory where it is not set and the machine is small",
    protects="requests of ordinary size from a budget that they hardly fit in",
    when_hit="the budget is as large as this",
)

PROCESS_BYTES: Final = Limit(
    100 * MIB,
    "bytes that the process has for itself, besides the budget for memory",
    protects="the machine from what the process has and counts for no client: compiled "
    "conversions, and freed memory in pieces that are too small to be used again",
    when_hit="what it has beyond that takes from the budget, up to half of it",
)

CONVERSIONS_BYTES: Final = Limit(
    32 * MIB,
    "bytes of the budget for memory, or half of it where that is less, for conversions, which are "
    "loaded when they are first used, and pieces of freed memory",
    protects="the machine: when they are loaded, clients may have all of the budget",
    when_hit="what they take beyond it takes from the budget too",
)

LITTLE_MEMORY_BYTES: Final = Limit(
    1280 * KIB,
    "bytes that one connection holds when it holds little: a megabyte of messages and what a "
    "protocol puts around them",
    protects="the last quarter of the budget for memory, which is for those who hold little",
    when_hit="the connection shares the other three quarters with those who hold more",
)

LEAST_MEMORY_BYTES: Final = Limit(
    4 * KIB,
    "bytes that one connection holds however short memory is, and that are read at once then",
    protects="clients that ask one small thing at a time from those that hold what there is",
    when_hit="the connection waits until it fits, as those who hold more do",
)

HOLDER_LEAST_LEASES: Final = Limit(
    8,
    "runs of up to 1,024 small messages, or large batches, that one consumer of a subscription "
    "has however full the eighth of the budget for memory is that is for subscriptions",
    protects="consumers that acknowledge from those that don't",
    when_hit="the consumer gets more once it has acknowledged, or others have",
)

KEY_WAITING_LEAST: Final = Limit(
    100,
    "batches of one Key_Shared subscription that wait for their key's consumer while others go on, "
    "however full the eighth of the budget for memory is that is for subscriptions",
    protects="subscriptions in which keys wait for a moment from those in which they do for long",
    when_hit="the subscription reads no further before some of them are taken",
)

PENDING_LEAST_BLOCKS: Final = Limit(
    16,
    "pieces of 1,024 messages of one subscription in which open transactions have acknowledged "
    "something, however full the eighth of the budget for memory is that is for subscriptions",
    protects="transactions of little from those that acknowledge far and wide",
    when_hit="an acknowledgement in a transaction is refused while there is no memory",
)

CURSOR_LEAST_BYTES: Final = Limit(
    16 * KIB,
    "bytes of what one subscription has acknowledged in no order, however full the eighth of the "
    "budget for memory is that is for subscriptions: 50 pieces of 1,024 messages",
    protects="consumers that acknowledge nearly in order from those that leave holes",
    when_hit="the subscription's consumers get what is open in between before more; what was not "
    "delivered can't be acknowledged",
)

DELAYED_RUNS: Final = Limit(
    4_000_000,
    "runs of messages that one subscription keeps until they are due, each of about 22 bytes: "
    "messages that stand side by side and are due at the same time are one",
    protects="memory",
    when_hit="the subscription reads no further before some are due; nothing is lost, and others "
    "are not concerned",
)

DELAYED_LEAST_RUNS: Final = Limit(
    1_024,
    "runs of messages that one subscription keeps until they are due however full the eighth of "
    "the budget for memory is that is for subscriptions",
    protects="subscriptions in which little is delayed from those in which much is",
    when_hit="the subscription reads no further before some are due, or there is memory",
)

CONNECTION_LEAST_BYTES: Final = Limit(
    12 * KIB,
    "bytes of consumers and producers that one connection keeps open however full the eighth of "
    "the budget for memory is that is for those: two consumers, or eleven producers",
    protects="clients with a few consumers or producers from those that open thousands",
    when_hit="a connection has at most twice as much as is left of the eighth; the next consumer "
    "or producer is refused",
)

MEMBER_GROUPS: Final = Limit(
    1_000,
    "consumer groups of Iggy's kind that one connection is a member of",
    protects="memory, and other clients' time when the connection ends",
    when_hit="joining the next one is refused",
)

MEMBER_LEAST_GROUPS: Final = Limit(
    8,
    "consumer groups of Iggy's kind that one connection is a member of however full the eighth of "
    "the budget for memory is that is for what connections keep open",
    protects="clients that are in a few groups from those that join thousands",
    when_hit="joining the next one is refused",
)

RESERVED_SECONDS: Final = Limit(
    10,
    "seconds that what inflates or is converted waits for memory, or its turn beyond the budget",
    protects="readers from waiting for one another, each with what it has read",
    when_hit="a producer's batch is refused, to be sent again, and a reader gets less, or nothing",
)

SHORTAGE_SECONDS: Final = Limit(
    1,
    "seconds that somebody waits for memory before others are cut",
    protects="clients from those who hold memory and do not get on with it",
    when_hit="connections are cut that got stuck, the first one first",
)

RECEIVE_BUFFER_BYTES: Final = Limit(
    256 * KIB,
    "bytes, one buffer for all connections",
    protects="memory: an idle connection costs no receive buffer",
    when_hit="a frame that does not fit gets a buffer of its own",
)

FREED_BYTES: Final = Limit(
    64 * MIB,
    "bytes of freed memory that the broker keeps, the process that compacts, and each Python "
    "worker of Spark's, on glibc",
    protects="the time of a page fault for every page of every large read",
    when_hit="what is freed beyond it goes back to the operating system",
)

FRAME_KEPT_BYTES: Final = Limit(
    5 * MIB,
    "bytes of the largest frame that is received into memory that is kept and used again",
    protects="memory from the pieces that large frames leave",
    when_hit="the frame gets a mapping of its own; either takes pages as its bytes really arrive",
)

QUOTAS: Final = Limit(
    1_000,
    "quotas of users and client ids",
    protects="memory, and the time of a client that asks for all of them",
    when_hit="the new quota is refused",
)

QUOTA_BUCKETS: Final = Limit(
    10_000,
    "users and client ids whose use of a quota is remembered",
    protects="memory from clients that call themselves something else each time",
    when_hit="what the one used that was not there for longest is forgotten",
)

LATEST_BYTES: Final = Limit(
    1 * MIB,
    "bytes of batches, of all partitions, that are kept from their append for those who wait",
    protects="memory",
    when_hit="those of the partition that was appended to longest ago are read from its file",
)

LATEST_BATCH_BYTES: Final = Limit(
    8 * KIB,
    "bytes of one batch that is kept from its append for those who wait",
    protects="memory: a larger one is read for less than it costs to send",
    when_hit="it is read from its file",
)

LATEST_BATCHES: Final = Limit(
    16,
    "batches of one partition that are kept from their append for those who wait",
    protects="memory, and the time to find one",
    when_hit="the oldest is read from its file",
)
