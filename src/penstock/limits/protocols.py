"""The limits of Kafka, Pulsar and Iggy, in this order."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import KIB, MIB, Limit

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

KAFKA_PARTITIONS_DESCRIBED: Final = Limit(
    2_000,
    "partitions in one answer to a Kafka DescribeTopicPartitions (Kafka's own default)",
    protects="memory and other clients' time",
    when_hit="the answer ends and tells where the next one goes on",
)

KAFKA_SESSION_PARTITIONS: Final = Limit(
    10_000,
    "partitions in the fetch session of a Kafka connection",
    protects="other clients' time: an empty request has all of them looked at",
    when_hit="there is no session, and the client names its partitions each time",
)

KAFKA_FETCH_BYTES: Final = Limit(
    55 * MIB,
    "bytes of one answer to a Kafka Fetch (Kafka's own default)",
    protects="memory from consumers that ask for everything at once",
    when_hit="the answer ends early; the consumer fetches on",
)

KAFKA_PROMPT_FETCH_BYTES: Final = Limit(
    2 * MIB,
    "bytes of one partition read for a Kafka Fetch with a min_bytes of 0 or 1, the default",
    protects="other clients' time from one read, and the client's own: it waits for the first byte "
    "until the last one is read and checked",
    when_hit="the answer ends early; a consumer that sets fetch.min.bytes gets all it asks for, "
    "and so does one whose answer goes from the file, of which nothing is read before it goes out",
)

KAFKA_CONVERSION_SECONDS: Final = Limit(
    5,
    "seconds, or the wait that the client asks for where that is longer",
    protects="a consumer that does not want to wait, while much is converted for it",
    when_hit="the answer has what was read so far; the consumer fetches on",
)

KAFKA_LARGE_FETCH_SECONDS: Final = Limit(
    5,
    "seconds that the answer to a Kafka Fetch of more than 500 topics and partitions waits for "
    "messages",
    protects="memory: each partition of a request takes some 450 bytes as long as it waits",
    when_hit="the answer is given with what there is, and may be empty; the consumer fetches on",
)

KAFKA_OFFSET_METADATA_BYTES: Final = Limit(
    4 * KIB,
    "bytes of a client's note beside a committed offset (Kafka's own default)",
    protects="the database and memory",
    when_hit="the offset is not committed",
)

OFFSETS_COMMITTED_TOGETHER: Final = Limit(
    500,
    "committed offsets of one request that are written in one transaction",
    protects="other clients' time",
    when_hit="the next ones are written when these are durable",
)

KAFKA_RESPONSE_BYTES: Final = Limit(
    1024 * MIB,
    "bytes of one answer to our own Kafka client",
    protects="memory from something that is no Kafka broker",
    when_hit="the connection is closed and the command fails",
)

KAFKA_THROTTLE_SECONDS: Final = Limit(
    10,
    "seconds that a Kafka client is asked to wait before it creates more topics",
    protects="the client's other requests, which wait as long",
    when_hit="the client asks again, and is refused again",
)

IGGY_ITEMS_AT_ONCE: Final = Limit(
    100,
    "items of one list in an answer of Iggy's that is encoded at once",
    protects="other clients' time",
    when_hit="it is encoded in steps, between which others have their turn",
)

KAFKA_RECORDS_NAMED: Final = Limit(
    1_000,
    "records of one batch that are named in its refusal",
    protects="memory: a small batch may inflate to a million of them",
    when_hit="the first ones are named",
)

KAFKA_MEMBER_PROTOCOLS: Final = Limit(
    1_000,
    "protocols that one member of a Kafka consumer group offers; clients have a handful",
    protects="other clients' time: all members' protocols are compared in every rebalance",
    when_hit="the member is refused",
)

KAFKA_GROUPS: Final = Limit(
    100_000,
    "consumer groups of Kafka's classic protocol in memory",
    protects="memory",
    when_hit="groups without members are forgotten, but for their offsets; when all have members, "
    "joining a new one is refused",
)

ADDRESS_GROUPS: Final = Limit(
    20_000,
    "consumer groups that the clients of one address made: of Kafka's classic protocol those in "
    "memory, of Iggy's kind those made since the start",
    protects="clients of other addresses from having none left to make",
    when_hit="Kafka groups of this address without members are forgotten, but for their offsets; "
    "where that is not enough, joining or creating a new one is refused for this address",
)

PULSAR_MESSAGE_BYTES: Final = Limit(
    5 * MIB,
    "bytes of one Pulsar entry, stated to clients when they connect (Pulsar's own default); "
    "`pulsar_message_bytes` sets it",
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

PULSAR_CONNECTION_PRODUCERS: Final = Limit(
    10_000,
    "producers on one Pulsar connection, where the eighth of the budget for memory that is for "
    "them has room for as many",
    protects="memory",
    when_hit="the next one is refused",
)

PULSAR_CONNECTION_CONSUMERS: Final = Limit(
    10_000,
    "consumers on one Pulsar connection, where the eighth of the budget for memory that is for "
    "them has room for as many",
    protects="memory",
    when_hit="the next one is refused",
)

PULSAR_CONNECTION_WATCHERS: Final = Limit(
    100,
    "watchers of topics on one Pulsar connection",
    protects="other clients' time: each looks at all topics of its namespace when one comes or "
    "goes",
    when_hit="the next one is refused, and its client asks for the topics now and then",
)

PULSAR_TRANSIENT_SUBSCRIPTIONS: Final = Limit(
    100,
    "subscriptions of a non-persistent Pulsar topic",
    protects="other clients' time: each gets a message in the turn that took it",
    when_hit="the next one is refused",
)

PULSAR_UNREAD_BYTES: Final = Limit(
    1 * MIB,
    "bytes of non-persistent messages that a Pulsar consumer has not read yet",
    protects="memory",
    when_hit="messages are dropped for it until it has read them",
)

PULSAR_TOPIC_PATTERN: Final = Limit(
    50,
    "characters of a pattern of Pulsar topics (Pulsar's own default)",
    protects="other clients' time",
    when_hit="a watcher is refused; who asks for a list gets all topics, and looks itself",
)

PULSAR_CLIENT_NAME: Final = Limit(
    1024,
    "characters of the name of a Pulsar producer or consumer",
    protects="memory",
    when_hit="the producer or consumer is refused",
)

PULSAR_CONSUMER_METADATA: Final = Limit(
    1_024,
    "bytes of the keys and values of a Pulsar consumer's metadata (Pulsar's own default)",
    protects="clients from a difference: it is not kept",
    when_hit="the consumer is refused",
)

PULSAR_CLOSED_PRODUCERS: Final = Limit(
    1_024,
    "closed producers that one Pulsar connection remembers, to drop their late messages",
    protects="memory",
    when_hit="the oldest is forgotten; a message that is later still closes the connection",
)

PULSAR_ACK_RUN_BYTES: Final = Limit(
    4 * KIB,
    "bytes of ACK frames that are taken as one",
    protects="other clients' time",
    when_hit="the next frames are taken in a step of their own",
)

PULSAR_COMMAND_BYTES: Final = Limit(
    512 * KIB,
    "bytes of a Pulsar command, without the entry behind it: room to acknowledge or give back in "
    "one command all that a consumer may hold",
    protects="other clients' time and memory: a command is parsed at once, into many small parts",
    when_hit="the connection is closed",
)

PULSAR_COMMAND_PARTS: Final = Limit(
    1_000,
    "properties and other parts of a Pulsar command, but for lists of message ids",
    protects="other clients' time: each has text that is checked",
    when_hit="the connection is closed",
)

PULSAR_ACK_SET_WORDS: Final = Limit(
    16_384,
    "words, of 64 messages each, of one ack set, and of all that are taken in one turn",
    protects="other clients' time",
    when_hit="the connection is closed; where several sets have more together, other connections "
    "have their turn before the next one",
)

PULSAR_ACKNOWLEDGED_TOGETHER: Final = Limit(
    1_000,
    "message ids of one acknowledgement that are taken in one turn",
    protects="other clients' time",
    when_hit="other connections have their turn before the rest is taken",
)

PULSAR_LOOK_UPS_TOGETHER: Final = Limit(
    100,
    "message ids of one acknowledgement that are looked up in the log in one turn, and damaged "
    "batches that are passed over to find the last message of a topic",
    protects="other clients' time",
    when_hit="other connections have their turn before the rest is looked up; the last message is "
    "said to be the damaged one",
)

ACKNOWLEDGED_THROUGH_AT_ONCE: Final = Limit(
    8_000_000,
    "messages that one cumulative acknowledgement passes in one turn",
    protects="other clients' time, where some of very many messages were acknowledged before",
    when_hit="it goes on when others had their turn",
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

IGGY_PAYLOAD_BYTES: Final = Limit(
    64_000_000,
    "bytes of one Iggy message's payload (Iggy's own limit)",
    protects="what Iggy's clients take",
    when_hit="the batch is refused",
)

IGGY_USER_HEADERS_BYTES: Final = Limit(
    100_000,
    "bytes of one Iggy message's user headers (Iggy's own limit)",
    protects="what Iggy's clients take",
    when_hit="the batch is refused",
)

IGGY_POLL_BYTES: Final = Limit(
    16 * MIB,
    "bytes of batches in one answer to an Iggy poll",
    protects="memory from consumers that ask for everything at once",
    when_hit="the answer ends before the batch that would pass it, but for a first one",
)

IGGY_REPEATED_REPLY_BYTES: Final = Limit(
    1 * KIB,
    "bytes of the answer to a session's last write, which is kept in case the write is repeated",
    protects="memory",
    when_hit="the repeated write is answered with 'request already applied'",
)

IGGY_KNOWN_PLACES: Final = Limit(
    1024,
    "polls of Iggy clients, places in them, and places of sends, whose bytes are remembered, with "
    "what they say",
    protects="memory, of which one takes up to 2 KiB",
    when_hit="the one that was asked for longest ago is read anew",
)

IGGY_KEPT_BYTES: Final = Limit(
    16 * MIB,
    "bytes of what Iggy polls have read last that are kept for polls that go on there",
    protects="memory, in which they count as a cache",
    when_hit="what was polled longest ago is read from the log again",
)

IGGY_RESTATED_KEPT_BYTES: Final = Limit(
    8 * MIB,
    "bytes of answers to polls of Iggy's older dialects that are kept for those who ask the same",
    protects="memory, in which they count as a cache",
    when_hit="what was asked for longest ago is made again",
)

IGGY_RESTATED_KEPT_AT_FIRST_BYTES: Final = Limit(
    1 * MIB,
    "bytes of them that are kept before one is asked for that is not",
    protects="the processor's own memory: the next answer takes the place of the last one there",
    when_hit="what was asked for longest ago is made again, and more are kept from then on",
)

IGGY_READ_AHEAD_BYTES: Final = Limit(
    64 * KIB,
    "bytes that a small Iggy poll reads that goes on where one before it ended",
    protects="other clients' time from one read",
    when_hit="the polls behind it read on",
)

IGGY_READ_BYTES: Final = Limit(
    1 * MIB,
    "bytes that an Iggy poll reads from the log at once",
    protects="other clients' time from one read",
    when_hit="the poll reads on in another step",
)

IGGY_RESTATED_AT_ONCE_BYTES: Final = Limit(
    4 * MIB,
    "bytes of messages of Iggy's older dialects that are restated on the event loop: about two "
    "milliseconds at most",
    protects="other clients' time",
    when_hit="they are restated in a thread",
)

IGGY_REQUEST_PARTITIONS: Final = Limit(
    1_000,
    "partitions that one Iggy request makes (Iggy's own limit)",
    protects="file descriptors and the time of other clients",
    when_hit="the request is refused",
)

IGGY_SNAPSHOT_LINES: Final = Limit(
    2_000,
    "lines of one section of a snapshot that an Iggy client asks for: files, or processes",
    protects="memory, and other clients' time from the thread that gathers them",
    when_hit="the section ends there, and says so",
)

IGGY_SILENCE_SECONDS: Final = Limit(
    36,
    "seconds (iggy-server's heartbeat of 30 s, and a fifth)",
    protects="the other members of a group from one that is gone and still has partitions",
    when_hit="the member's partitions go to the others, and its connection is closed",
)
