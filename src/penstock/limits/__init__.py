"""Every limit in one place: its value, its unit, what it protects and what happens when it is hit.

A limit is an integer that carries its own explanation, so code uses it as a number and
documentation can list them all. Those of one protocol are in `protocols.py`, those of what
clients create in `creations.py`, those of the budget for memory in `memory.py`, those of schemas
in `schemas.py`, those of what the broker says in `log_lines.py`; all are named here.
"""

from __future__ import annotations

from typing import Final

from penstock.limits.compaction import *  # noqa: F403  # each of them
from penstock.limits.creations import *  # noqa: F403  # each of them
from penstock.limits.limit import KIB as KIB
from penstock.limits.limit import MIB as MIB
from penstock.limits.limit import Limit as Limit
from penstock.limits.log_lines import *  # noqa: F403  # each of them
from penstock.limits.logs import *  # noqa: F403  # each of them
from penstock.limits.memory import *  # noqa: F403  # each of them
from penstock.limits.protocols import *  # noqa: F403  # each of them
from penstock.limits.schemas import *  # noqa: F403  # each of them
from penstock.limits.transactions import *  # noqa: F403  # each of them
from penstock.limits.validation import *  # noqa: F403  # each of them

CONNECTIONS: Final = Limit(
    10_000,
    "connections",
    protects="memory and file descriptors of the whole broker",
    when_hit="a new connection is closed at once",
)

CONNECTION_FILES_PERCENT: Final = Limit(
    30,
    "percent of the files that the process may have open, for connections, which may need two each",
    protects="logs: a flood of connections leaves them the files that they need",
    when_hit="a new connection is closed at once",
)

OPEN_FILES: Final = Limit(
    1 << 20,
    "files and connections, where the operating system allows as many",
    protects="the operating system's own tables",
    when_hit="connections are not accepted and partitions are not created until some are closed",
)

FOLDER_CHECK_SECONDS: Final = Limit(
    1,
    "seconds",
    protects="acknowledged messages from a folder that is removed under a running broker",
    when_hit="it is looked after all folders again, a hundred open logs at a time",
)

FRAME_SECONDS: Final = Limit(
    10,
    "seconds from the first byte of a request to its last, besides what its size takes; a "
    "connection's first request begins with the connection",
    protects="memory and connections from clients that never ask anything, or never to the end",
    when_hit="the connection is cut",
)

FRAME_BYTES_A_SECOND: Final = Limit(
    32 * KIB,
    "bytes a second at which a request of any size may arrive; the time in which the broker does "
    "not read is left out",
    protects="memory from large requests that trickle in, and slow clients from their time",
    when_hit="the connection is cut once it falls behind by FRAME_SECONDS",
)

IDLE_SECONDS: Final = Limit(
    600,
    "seconds",
    protects="connections from clients that went away without closing (Kafka's own default)",
    when_hit="the connection is closed; clients reconnect by themselves",
)

WRITE_STALL_SECONDS: Final = Limit(
    600,
    "seconds (a Kafka consumer may read nothing for five minutes between two polls)",
    protects="memory from clients that ask and never read the answers",
    when_hit="the connection is cut",
)

UNHEARD_SECONDS: Final = Limit(
    1,
    "seconds that the event loop comes late, as where the process was stopped or the machine slept",
    protects="clients from being taken for silent, all at once, when nobody could hear them",
    when_hit="that time does not count as silence: sessions, keep-alives and requests have it anew",
)

ADDRESSES_REMEMBERED: Final = Limit(
    10_000,
    "addresses of which the broker knows what they had lately",
    protects="memory",
    when_hit="the one that came back longest ago is forgotten, and may have everything anew",
)

CLOSING_SECONDS: Final = Limit(
    5,
    "seconds",
    protects="closed connections from requests that do not end",
    when_hit="the requests still in flight are cancelled and the connection is cut",
)

SHUTDOWN_SECONDS: Final = Limit(
    5,
    "seconds",
    protects="the operator who asked the broker to stop",
    when_hit="requests still in flight are dropped; nothing that was acknowledged is lost",
)

FRAME_HEAD_BYTES: Final = Limit(
    1 * KIB,
    "bytes",
    protects="the receive buffer from a protocol that can't tell where its frame ends",
    when_hit="the connection is closed",
)

REQUESTS_IN_FLIGHT: Final = Limit(
    1_000,
    "requests on one connection (Pulsar's own limit of pending sends)",
    protects="memory and the fairness between connections",
    when_hit="the connection is not read until answers went out",
)

REQUEST_BYTES_IN_FLIGHT: Final = Limit(
    64 * MIB,
    "bytes of requests on one connection",
    protects="memory",
    when_hit="the connection is not read until answers went out",
)

TURN_MICROSECONDS: Final = Limit(
    1_000,
    "microseconds of one pass of the event loop for what connections have just asked, and as many "
    "for what they asked before",
    protects="other clients' time from many requests at once",
    when_hit="the rest waits for the next pass",
)

TURN_STEPS: Final = Limit(
    64,
    "requests and answers of one connection in one turn",
    protects="other clients' time from one connection's many requests",
    when_hit="the connection is not read, and its next turn comes after the others'",
)

FIRST_TURN_STEPS: Final = Limit(
    8,
    "requests and answers of one connection in its first turn, where others have theirs to come",
    protects="clients that ask one thing at a time",
    when_hit="the connection is not read, and its next turn comes after the others'",
)

THREAD_SWITCH_MICROSECONDS: Final = Limit(
    500,
    "microseconds that a thread has the interpreter where another one waits for it",
    protects="producers, whose writes take other threads, from clients that keep the event loop "
    "busy, and the loop from those threads",
    when_hit="the other one goes on",
)

LOOP_TURN_MILLISECONDS: Final = Limit(
    100,
    "milliseconds of one turn of the event loop",
    protects="nobody by itself: it tells what to mend where others were kept waiting",
    when_hit="a warning in the log names what ran",
)

WRITES_TOGETHER_BYTES: Final = Limit(
    64 * KIB,
    "bytes of answers on one connection",
    protects="the client's waiting time from answers that are collected for one system call",
    when_hit="what was collected is sent at once",
)

RECEIVED_TOGETHER_BYTES: Final = Limit(
    256 * KIB,
    "bytes of a large frame that are received at a time",
    protects="other clients' time",
    when_hit="the rest is received when it was seen what time that took: within TURN_MICROSECONDS "
    "in the same pass of the event loop, else in the next ones, in turn with other connections",
)

SENT_TOGETHER_BYTES: Final = Limit(
    2 * MIB,
    "bytes of stored batches that one connection sends from a file in one turn",
    protects="other clients' time",
    when_hit="the rest is sent after others had their turn",
)

FROM_FILE_BYTES: Final = Limit(
    32 * KIB,
    "bytes of stored batches that go from the file to the client, at least",
    protects="nobody: fewer are cheaper copied",
    when_hit="they are read into memory and sent with the rest of the answer",
)

WRITE_BUFFER_BYTES: Final = Limit(
    1 * MIB,
    "bytes of answers on one connection that the client has not taken",
    protects="memory from clients that read slower than they ask",
    when_hit="the connection is not read, and pushed messages wait, until a quarter is left",
)

INFLATED_BATCH_BYTES: Final = Limit(
    128 * MIB,
    "bytes of one batch after decompression",
    protects="memory from a small batch that inflates to a large one",
    when_hit="a producer's batch is refused; one that is stored can't be read in another encoding "
    "than its own",
)

CONVERTED_BATCH_BYTES: Final = Limit(
    256 * MIB,
    "bytes of one batch in another encoding than the stored one",
    protects="memory from what every record of a batch repeats, as a producer's name",
    when_hit="the batch can't be read in another encoding than the one it was written in",
)

CONVERTED_BYTES: Final = Limit(
    32 * MIB,
    "bytes of batches in another encoding than the stored one, of all partitions",
    protects="memory",
    when_hit="what was not read for longest is dropped, and converted again for a later reader",
)

CONVERTED_TOGETHER_BYTES: Final = Limit(
    48 * MIB,
    "bytes that batches take at most that are converted together: inflated, and in both encodings",
    protects="memory from many batches that inflate to much; a larger one is converted alone",
    when_hit="the reader gets what was converted, and the next ones when it reads on",
)

CONVERTED_AT_ONCE_BYTES: Final = Limit(
    16 * KIB,
    "bytes, not compressed, that are converted on the event loop: about two milliseconds at most",
    protects="other clients' time",
    when_hit="the conversion runs in a thread",
)

CONVERTED_AT_ONCE_BATCHES: Final = Limit(
    64,
    "batches that are converted on the event loop",
    protects="other clients' time",
    when_hit="the conversion runs in a thread",
)

CONVERTED_AT_ONCE_RECORDS: Final = Limit(
    1024,
    "records that are converted on the event loop",
    protects="other clients' time",
    when_hit="the conversion runs in a thread",
)

CONVERSION_THREADS: Final = Limit(
    2,
    "conversions that run in threads at the same time",
    protects="memory from many batches that inflate at once, and the processor",
    when_hit="the next one waits",
)

CHUNK_RUNS: Final = Limit(
    256,
    "runs of a megabyte of earlier batches that the chunks of the Pulsar messages of one run are "
    "looked for in",
    protects="the disk and other clients' time from last chunks whose message was never sent",
    when_hit="the message is left out, as one whose chunks are gone",
)

CONVERTED_RUNS: Final = Limit(
    4,
    "runs of converted batches of one partition in one encoding",
    protects="the places of other partitions' readers from many readers of one",
    when_hit="the run that nobody read for longest is dropped",
)

CONVERTED_AHEAD_BYTES: Final = Limit(
    1 * MIB,
    "bytes of the longest run that is converted ahead of a reader, which doubles up to there",
    protects="other clients' time, and memory from readers that stop",
    when_hit="the next runs are as long as the last",
)

READ_PLACES: Final = Limit(
    256,
    "ends of recent reads of one partition, so that a reader that goes on needs no index",
    protects="memory",
    when_hit="the oldest is forgotten; its reader finds its place through the index",
)

READ_FILES: Final = Limit(
    256,
    "files of logs that are open for reading",
    protects="open files",
    when_hit="one that was opened long ago is closed, and opened again when it is read",
)

LOOKED_UP_AT_ONCE_BYTES: Final = Limit(
    2 * MIB + 256 * KIB,
    "bytes of one file that one read takes from memory on the event loop",
    protects="other clients' time",
    when_hit="the read is done in a thread",
)

LOOKED_UP_AT_ONCE_BATCHES: Final = Limit(
    4_096,
    "batches that one read looks at one by one on the event loop",
    protects="other clients' time",
    when_hit="the read is done in a thread",
)

LEADER_EPOCHS: Final = Limit(
    10_000,
    "leader epochs of one partition: starts of the broker after which something was written to it",
    protects="memory",
    when_hit="the oldest is forgotten; it is answered to end where the oldest known one begins",
)

RESET_SUBSCRIPTION_SECONDS: Final = Limit(
    60,
    "seconds that a non-durable subscription outlives a reset without a consumer",
    protects="memory from readers that were sent away by their own seek and never came back",
    when_hit="the subscription ends",
)

TOPIC_GROUPS: Final = Limit(
    100_000,
    "consumer groups of Iggy's kind, of all topics",
    protects="memory and the database",
    when_hit="the next one is not created",
)

COMMITTED_OFFSET_BYTES: Final = Limit(
    256 * MIB,
    "bytes of committed offsets, with the names of who committed and their notes: some 800,000; "
    "with subscriptions no more than a quarter of the budget for memory",
    protects="memory and the database from names that clients make up",
    when_hit="offsets of other partitions and of new names are not committed; those that are there "
    "move on",
)

SUBSCRIPTIONS: Final = Limit(
    100_000,
    "subscriptions, durable or not; with committed offsets no more than have room in a quarter of "
    "the budget for memory, which is some 16,000 of the least",
    protects="memory and the database",
    when_hit="the next one is not created",
)

SUBSCRIPTION_BYTES: Final = Limit(
    16 * KIB,
    "bytes of a subscription's name and properties",
    protects="memory and the database",
    when_hit="the subscription is not created",
)

SUBSCRIPTION_CONSUMERS: Final = Limit(
    1_000,
    "consumers of one subscription",
    protects="the time that it takes to choose one",
    when_hit="the next one is refused, as while it is another one's alone",
)

UNACKNOWLEDGED_OF_SUBSCRIPTION: Final = Limit(
    200_000,
    "messages that all consumers of a Shared subscription hold (Pulsar's "
    "maxUnackedMessagesPerSubscription)",
    protects="memory",
    when_hit="no consumer gets more until half of them are acknowledged",
)

UNACKNOWLEDGED_MESSAGES: Final = Limit(
    50_000,
    "messages that one consumer of a Shared subscription holds (Pulsar's "
    "maxUnackedMessagesPerConsumer)",
    protects="memory, and the other consumers from one that does not acknowledge",
    when_hit="the consumer gets no more until half of them are acknowledged",
)

KEY_WAITING_OF_CONSUMER: Final = Limit(
    2_000,
    "batches of a Key_Shared subscription that wait for their key's consumer while others go on, "
    "times its consumers (Pulsar's keySharedLookAheadMsgInReplayThresholdPerConsumer)",
    protects="memory, and what would have to be read twice",
    when_hit="the subscription reads no further before some of them are taken; what came back "
    "waits besides",
)

KEY_WAITING: Final = Limit(
    20_000,
    "batches that wait so in all (Pulsar's keySharedLookAheadMsgInReplayThresholdPerSubscription)",
    protects="memory, and what would have to be read twice",
    when_hit="the subscription reads no further before some of them are taken",
)

KEY_RANGES: Final = Limit(
    250,
    "ranges of keys that one Pulsar consumer chooses for itself",
    protects="the time that it takes to compare them with those of others",
    when_hit="the consumer is refused",
)

REMEMBERED_BATCHES: Final = Limit(
    1_000,
    "large batches, or runs of small ones, that the consumer of an Exclusive or Failover "
    "subscription has and the broker knows",
    protects="memory from consumers that do not acknowledge",
    when_hit="of the oldest one no more is known than where batches begin, which is a bit an "
    "offset, and nothing where memory is short: the log is asked",
)

UNFINISHED_CHUNKED_MESSAGES: Final = Limit(
    1_000,
    "messages of one Shared subscription whose last chunk did not come yet",
    protects="memory: the producer may have died",
    when_hit="the oldest is forgotten, and its next chunk may go to another consumer",
)

DECODED_ROWS: Final = Limit(
    1 << 20,
    "records, and as many headers, of one batch",
    protects="memory: each takes some 200 bytes besides its own, which may be as few as 2",
    when_hit="a producer's batch is refused; one that is stored can't be read in another encoding "
    "than its own",
)

TOPIC_PARTITIONS: Final = Limit(
    10_000,
    "partitions of one topic",
    protects="memory and file descriptors",
    when_hit="the topic, or what would be added to it, is not created",
)

GROUP_MEMBERS: Final = Limit(
    1_000,
    "members of one Kafka consumer group, those included that were given an id and have not "
    "come back",
    protects="memory, and other clients' time: a rebalance is about all members at once",
    when_hit="the next one is refused",
)

GROUP_BYTES: Final = Limit(
    16 * MIB,
    "bytes that the members of one Kafka consumer group say of themselves, and of an assignment",
    protects="memory and the database, where stable groups are kept",
    when_hit="the member, or the assignment, is refused",
)

PRODUCERS_REMEMBERED: Final = Limit(
    10_000,
    "idempotent producers of one partition",
    protects="memory",
    when_hit="those are forgotten that are idle, and may go on with any sequence; where none is, a "
    "new one's batches are refused, and clients send them again",
)

PRODUCERS_LEAST: Final = Limit(
    8,
    "idempotent producers of one partition however full the sixteenth of the budget for memory is "
    "that is for all of them",
    protects="partitions of few producers from those of many",
    when_hit="those are forgotten that are idle, of all partitions; where none is, a new one's "
    "batches are refused, and clients send them again",
)

PRODUCER_IDLE_SECONDS: Final = Limit(
    600,
    "seconds without a batch: clients give up what they could not send after two to five minutes",
    protects="producers from being forgotten while they may send a batch again",
    when_hit="the producer is forgotten if there is no room for another one",
)
