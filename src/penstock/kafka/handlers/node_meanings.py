"""What the keys of the node, of groups and of clients' metrics mean here, as consoles show it.

A key that is a topic's default has that setting's own words.
"""

from typing import Final

MEANINGS: Final = {
    "advertised.listeners": "The address under which the client reached this node.",
    "authorizer.class.name": "Who decides on access: nobody, all is allowed.",
    "auto.create.topics.enable": "Whether a topic that a client asks for and is missing is made.",
    "broker.id": "The number of this node, under the name that it had before node.id.",
    "connections.max.idle.ms": "After which time without a request a connection is closed.",
    "consumer.heartbeat.interval.ms": "How often members of a group of KIP-848 report.",
    "consumer.session.timeout.ms": "After which time without a report such a member is out.",
    "default.replication.factor": "On how many nodes each partition of a new topic is.",
    "delete.topic.enable": "Whether clients may delete topics.",
    "fetch.max.bytes": "The most that one answer to a Fetch holds.",
    "group.coordinator.rebalance.protocols": "The kinds of groups that are served.",
    "group.initial.rebalance.delay.ms": "How long a group that is empty waits for more members.",
    "group.max.session.timeout.ms": "The longest session that a member may ask for.",
    "group.max.size": "How many members a group may have.",
    "group.min.session.timeout.ms": "The shortest session that a member may ask for.",
    "inter.broker.protocol.version": "The version of Kafka whose requests are spoken.",
    "interval.ms": "How often clients would send their metrics.",
    "listeners": "The port on which clients of Kafka are served.",
    "log.cleaner.backoff.ms": "How often topics are looked at that may have to be compacted.",
    "log.cleaner.enable": "Whether topics are compacted that are set to it.",
    "log.dirs": "The data folder.",
    "log.message.format.version": "The newest numbered format of messages: record batches.",
    "log.retention.check.interval.ms": "How often messages are looked for that may go.",
    "log.retention.hours": "As log.retention.ms, which holds, in whole hours.",
    "match": "Which clients would send their metrics.",
    "max.connections": "How many connections the node takes, of all protocols.",
    "metrics": "Which metrics clients would send.",
    "node.id": "The number of this node.",
    "num.partitions": "How many partitions a topic has whose maker does not say.",
    "offset.metadata.max.bytes": "The longest note beside a committed offset.",
    "offsets.retention.minutes": "How long offsets of an empty group are kept: until its deletion.",
    "offsets.topic.replication.factor": "On how many nodes committed offsets are.",
    "process.roles": "The node serves clients, and is its own controller.",
    "remote.log.storage.system.enable": "Whether segments are moved to another storage.",
    "sasl.enabled.mechanisms": "How clients may log in: in no way.",
    "socket.request.max.bytes": "The largest request; beyond it the connection is closed.",
    "transaction.max.timeout.ms": "The longest time that a producer may give its transactions.",
    "transactional.id.expiration.ms": "After which time an unused transactional id is forgotten.",
}
