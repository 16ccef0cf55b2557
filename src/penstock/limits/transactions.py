"""The limits of transactions."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import KIB, MIB, Limit

TRANSACTION_BYTES: Final = Limit(
    128 * MIB,
    "bytes of transactional ids and of what is open: some 250,000 ids; with committed offsets and "
    "subscriptions no more than a quarter of the budget for memory",
    protects="memory and the database from names that clients make up",
    when_hit="ids are forgotten that were not used for TRANSACTIONAL_ID_IDLE_SECONDS; where that "
    "is not enough, the next one is refused, and clients try again",
)

TRANSACTIONAL_ID_IDLE_SECONDS: Final = Limit(
    3_600,
    "seconds without a transaction, and with none that is open",
    protects="producers that are at work from those that make up names",
    when_hit="the transactional id is forgotten if there is no room for another one",
)

OPEN_TRANSACTIONS: Final = Limit(
    20_000,
    "transactions that are open, of all protocols",
    protects="memory, and the time to look which of them are open for too long",
    when_hit="the next one is refused, and clients try again",
)

ADDRESS_OPEN_TRANSACTIONS: Final = Limit(
    5_000,
    "transactions that are open and were begun, since the start, by clients of one address",
    protects="clients of other addresses from having none left to begin",
    when_hit="the next one is refused for this address, and its clients try again",
)

TRANSACTION_PARTS: Final = Limit(
    10_000,
    "partitions, groups and subscriptions that have a part in one transaction",
    protects="memory, and other clients' time when it ends",
    when_hit="the next one is refused, and so is what was to be written there",
)

TRANSACTIONS_ENDED: Final = Limit(
    10_000,
    "transactions of producers without a transactional id of which it is known how they ended",
    protects="memory",
    when_hit="the oldest is forgotten, and is not known to a client that ends it once more",
)

EPOCH_PRODUCERS: Final = Limit(
    2_000,
    "producers whose transactions are committed together, as one epoch of a writer",
    protects="other clients, whose writes wait behind it",
    when_hit="the epoch is refused: the writer has to have fewer tasks",
)

WRITERS: Final = Limit(
    20_000,
    "writers of which the last epoch is known",
    protects="memory and the database from names that clients make up",
    when_hit="those are forgotten that were not used for TRANSACTIONAL_ID_IDLE_SECONDS; where that "
    "is not enough, the next one is refused, and it tries again",
)

WRITER_CHARACTERS: Final = Limit(
    200,
    "characters of a writer's name",
    protects="memory",
    when_hit="the request is refused",
)

FINGERPRINT_CHARACTERS: Final = Limit(
    64,
    "characters of the fingerprint of a writer's epoch",
    protects="memory",
    when_hit="the request is refused",
)

TRANSACTION_CHECK_SECONDS: Final = Limit(
    1,
    "seconds",
    protects="readers from transactions that are open for longer than their producers wanted",
    when_hit="it is looked after all of them again, and those whose time is over are aborted",
)

TRANSACTIONS_SAVED_TOGETHER: Final = Limit(
    500,
    "transactions that have ended and are stored in one step, or whose time was over",
    protects="other clients, whose writes wait behind it",
    when_hit="the next ones follow in a step of their own",
)

ABORTED_TRANSACTIONS_READ: Final = Limit(
    2_048,
    "aborted transactions that end in what is read of a partition at once",
    protects="answers from a list that is longer than the messages, and the loop from making it",
    when_hit="what is read ends there, or up to 1,023 before, and is read on behind",
)

ABORTED_TRANSACTION_BYTES: Final = Limit(
    60 * MIB,
    "bytes that what is open on a partition, or was aborted there and is still in its log, takes "
    "in a checkpoint: some 15,000,000 aborted transactions",
    protects="a start from reading the whole log again, for want of a checkpoint",
    when_hit="the next transaction there is refused until retention takes the oldest messages, or "
    "compaction has for a while",
)

ABORTED_TOLD_SECONDS: Final = Limit(
    600,
    "seconds for which readers are told of aborted transactions that compaction has taken, whose "
    "messages they may have read from segment files before",
    protects="readers of segment files from messages of aborted transactions",
    when_hit="such a transaction is forgotten, unless somebody holds its offsets by a lease, and "
    "its marker goes",
)

UNSEEN_RANGES: Final = Limit(
    1_024,
    "ranges of a partition, for readers of an encoding, that are remembered to hold no message for "
    "them, as where transactions were aborted",
    protects="memory",
    when_hit="the shortest is read again by those who come to it",
)

PULSAR_HIDDEN_BATCHES: Final = Limit(
    10_000,
    "batches that were aborted, or end transactions, at the end of a partition, which are passed "
    "over to find the last message that consumers get",
    protects="other clients' time",
    when_hit="the last message is said to be at the last offset",
)

PATTERN_BYTES: Final = Limit(
    256 * KIB,
    "bytes that a client's pattern of transactional ids or topics takes when it is compiled",
    protects="memory, and other clients' patterns, which wait for it",
    when_hit="the pattern is refused (Kafka's INVALID_REGULAR_EXPRESSION, Pulsar's as too long)",
)
