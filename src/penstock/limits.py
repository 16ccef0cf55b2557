"""Every limit in one place: its value, its unit, what it protects and what happens when it is hit.

A limit is an integer that carries its own explanation, so code uses it as a number and
documentation can list them all.
"""

from __future__ import annotations

from typing import Final, Self

KIB: Final = 1024
MIB: Final = 1024 * KIB


class Limit(int):
    """A number with a unit, a reason and a consequence."""

    unit: str
    protects: str
    when_hit: str

    def __new__(cls, value: int, unit: str, *, protects: str, when_hit: str) -> Self:
        limit = super().__new__(cls, value)
        limit.unit = unit
        limit.protects = protects
        limit.when_hit = when_hit
        return limit


CONNECTIONS: Final = Limit(
    10_000,
    "connections",
    protects="memory and file descriptors of the whole broker",
    when_hit="a new connection is closed at once",
)

OPEN_FILES: Final = Limit(
    1 << 20,
    "files and connections, where the operating system allows as many",
    protects="the operating system's own tables",
    when_hit="connections are not accepted and partitions are not created until some are closed",
)

LOGS_OPENED_TOGETHER: Final = Limit(
    16,
    "logs",
    protects="other requests from one that needs every log of the broker for the first time",
    when_hit="the next logs are opened when these are open",
)

LOG_OPEN_RETRY_SECONDS: Final = Limit(
    1,
    "seconds",
    protects="disk and log file from clients that keep asking for a log that can't be opened",
    when_hit="the error of the last try is given again",
)

FIRST_FRAME_SECONDS: Final = Limit(
    10,
    "seconds",
    protects="connections from clients that connect and never ask anything",
    when_hit="the connection is closed",
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

RECEIVE_BUFFER_BYTES: Final = Limit(
    256 * KIB,
    "bytes, one buffer for all connections",
    protects="memory: an idle connection costs no receive buffer",
    when_hit="a frame that does not fit gets a buffer of its own",
)

FREED_BYTES: Final = Limit(
    64 * MIB,
    "bytes of freed memory that the process keeps, on glibc",
    protects="the time of a page fault for every page of every large read",
    when_hit="what is freed beyond it goes back to the operating system",
)

FRAME_HEAD_BYTES: Final = Limit(
    1 * KIB,
    "bytes",
    protects="the receive buffer from a protocol that can't tell where its frame ends",
    when_hit="the connection is closed",
)

FRAME_FIRST_ALLOCATION_BYTES: Final = Limit(
    1280 * KIB,
    "bytes: a megabyte of messages and what a protocol puts around them",
    protects="memory from a frame that announces a size and never arrives",
    when_hit="the frame's buffer doubles as its bytes really arrive",
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
    when_hit="the batch can't be read in another encoding than the one it was written in",
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

CHECKPOINT_STATES: Final = Limit(
    64,
    "owners of state in the checkpoint of one log",
    protects="a start from a checkpoint file that no release has written",
    when_hit="the file counts as damaged, and the log is read from its beginning",
)

CHECKPOINT_STATE_BYTES: Final = Limit(
    16 * MIB,
    "bytes of one owner's state in the checkpoint of a log",
    protects="memory and the time that a checkpoint takes",
    when_hit="the state of the checkpoint before is kept, and what came since is replayed",
)

LEADER_EPOCHS: Final = Limit(
    10_000,
    "leader epochs of one partition: starts of the broker after which something was written to it",
    protects="memory",
    when_hit="the oldest is forgotten; it is answered to end where the oldest known one begins",
)

PULSAR_MESSAGE_BYTES: Final = Limit(
    5 * MIB,
    "bytes of one Pulsar entry, stated to clients when they connect (Pulsar's own default)",
    protects="memory",
    when_hit="clients refuse or split a larger message; a frame over it closes the connection",
)

PULSAR_TOPIC_NAME: Final = Limit(
    1024,
    "characters of a Pulsar topic's name",
    protects="the database, and Pulsar's own tools, which put names into URLs",
    when_hit="the topic is not created",
)

PULSAR_KEEP_ALIVE_SECONDS: Final = Limit(
    30,
    "seconds between two PINGs to a Pulsar client (Pulsar's own default)",
    protects="consumers and producers from the place of one that is gone",
    when_hit="a client that said nothing since the last PING is closed",
)

PULSAR_LIVENESS_SECONDS: Final = Limit(
    5,
    "seconds that a Pulsar client may take to answer when another one wants its place",
    protects="the one that wants it, most often the same client over a new connection",
    when_hit="its consumer or producer is dropped, and the other one gets the place",
)

PULSAR_CLOSED_PRODUCERS: Final = Limit(
    1_024,
    "closed producers that one Pulsar connection remembers, to drop their late messages",
    protects="memory",
    when_hit="the oldest is forgotten; a message that is later still closes the connection",
)

PULSAR_LOOK_UPS_TOGETHER: Final = Limit(
    100,
    "message ids of one acknowledgement that are looked up in the log in one turn, and damaged "
    "batches that are passed over to find the last message of a topic",
    protects="other clients' time",
    when_hit="other connections have their turn before the rest is looked up; the last message is "
    "said to be the damaged one",
)

RESET_SUBSCRIPTION_SECONDS: Final = Limit(
    60,
    "seconds that a non-durable subscription outlives a reset without a consumer",
    protects="memory from readers that were sent away by their own seek and never came back",
    when_hit="the subscription ends",
)

KAFKA_REQUEST_BYTES: Final = Limit(
    100 * MIB,
    "bytes of one Kafka request (Kafka's own default)",
    protects="memory",
    when_hit="the connection is closed",
)

KAFKA_REQUEST_ELEMENTS: Final = Limit(
    100_000,
    "topics, partitions and other elements of all arrays in one Kafka request together",
    protects="memory and other clients' time: a small element becomes a large object",
    when_hit="the connection is closed",
)

KAFKA_ELEMENTS_AT_ONCE: Final = Limit(
    500,
    "elements of all arrays in one Kafka request or response that is decoded or encoded at once",
    protects="other clients' time",
    when_hit="it is decoded or encoded in steps, between which others have their turn",
)

KAFKA_FETCH_BYTES: Final = Limit(
    55 * MIB,
    "bytes of one answer to a Kafka Fetch (Kafka's own default)",
    protects="memory from consumers that ask for everything at once",
    when_hit="the answer ends early; the consumer fetches on",
)

KAFKA_PROMPT_FETCH_BYTES: Final = Limit(
    2 * MIB,
    "bytes of one partition in an answer to a Kafka Fetch with a min_bytes of 0 or 1, the default",
    protects="other clients' time from one read, and the client's own: it waits for the first byte "
    "until the last one is read and checked",
    when_hit="the answer ends early; a consumer that sets fetch.min.bytes gets all it asks for",
)

KAFKA_CONVERSION_SECONDS: Final = Limit(
    5,
    "seconds, or the wait that the client asks for where that is longer",
    protects="a consumer that does not want to wait, while the conversions compile, once after "
    "an installation",
    when_hit="the answer has what was read so far; the consumer fetches on",
)

KAFKA_OFFSET_METADATA_BYTES: Final = Limit(
    4 * KIB,
    "bytes of a client's note beside a committed offset (Kafka's own default)",
    protects="the database and memory",
    when_hit="the offset is not committed",
)

KAFKA_RESPONSE_BYTES: Final = Limit(
    1024 * MIB,
    "bytes of one answer to our own Kafka client",
    protects="memory from something that is no Kafka broker",
    when_hit="the connection is closed and the command fails",
)

IGGY_REQUEST_BYTES: Final = Limit(
    64 * MIB,
    "bytes of one Iggy request's body (Iggy's own default)",
    protects="memory",
    when_hit="the connection is closed",
)

IGGY_LEGACY_REQUEST_BYTES: Final = Limit(
    16 * MIB,
    "bytes of one request of Iggy's older dialects, whose servers took about 10 MiB of payload",
    protects="memory",
    when_hit="the connection is closed",
)

IGGY_POLL_BYTES: Final = Limit(
    16 * MIB,
    "bytes of batches in one answer to an Iggy poll",
    protects="memory from consumers that ask for everything at once",
    when_hit="the answer ends before the batch that would pass it, but for a first one",
)

IGGY_READ_BYTES: Final = Limit(
    1 * MIB,
    "bytes that an Iggy poll reads from the log at once",
    protects="other clients' time from one read",
    when_hit="the poll reads on in another step",
)

IGGY_REQUEST_PARTITIONS: Final = Limit(
    1_000,
    "partitions that one Iggy request makes (Iggy's own limit)",
    protects="file descriptors and the time of other clients",
    when_hit="the request is refused",
)

IGGY_SILENCE_SECONDS: Final = Limit(
    36,
    "seconds (iggy-server's heartbeat of 30 s, and a fifth)",
    protects="the other members of a group from one that is gone and still has partitions",
    when_hit="the member's partitions go to the others, and its connection is closed",
)

TOPIC_GROUPS: Final = Limit(
    100_000,
    "consumer groups of Iggy's kind, of all topics",
    protects="memory and the database",
    when_hit="the next one is not created",
)

KAFKA_GROUPS: Final = Limit(
    100_000,
    "consumer groups of Kafka's classic protocol in memory",
    protects="memory",
    when_hit="groups without members are forgotten, but for their offsets; when all have members, "
    "joining a new one is refused",
)

UNACKNOWLEDGED_MESSAGES: Final = Limit(
    50_000,
    "messages that one consumer of a Shared subscription holds (Pulsar's "
    "maxUnackedMessagesPerConsumer)",
    protects="memory, and the other consumers from one that does not acknowledge",
    when_hit="the consumer gets no more until half of them are acknowledged",
)

REMEMBERED_BATCHES: Final = Limit(
    50_000,
    "batches that the consumer of an Exclusive or Failover subscription has and the broker knows",
    protects="memory from consumers that do not acknowledge",
    when_hit="the oldest is forgotten; the log is asked when it is acknowledged",
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
    when_hit="the batch can't be read in another encoding than the one it was written in",
)

TOPIC_PARTITIONS: Final = Limit(
    10_000,
    "partitions of one topic",
    protects="memory and file descriptors",
    when_hit="the topic, or what would be added to it, is not created",
)

GROUP_MEMBERS: Final = Limit(
    10_000,
    "members of one Kafka consumer group, those included that were given an id and have not "
    "come back",
    protects="memory and the time that a rebalance takes",
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
    when_hit="the one that wrote longest ago is forgotten, and may go on with any sequence",
)
