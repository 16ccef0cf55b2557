"""What can go wrong in the broker; each protocol maps these to its own codes in one table."""

from __future__ import annotations


class BrokerError(Exception):
    """The request can't be carried out, and nothing was changed by it."""


class TopicExistsError(BrokerError):
    """A topic with this name, or with the same name in Kafka, is there already."""


class UnknownTopicError(BrokerError):
    """No such topic, or it was deleted meanwhile."""


class UnknownPartitionError(BrokerError):
    """The topic has no partition of this number."""


class InvalidTopicNameError(BrokerError):
    """The name breaks a rule of the protocol that asked for it."""


class InvalidPartitionCountError(BrokerError):
    """A topic has between 1 and the limit of partitions, and never gets fewer."""


class NamespaceExistsError(BrokerError):
    """A namespace, which Iggy calls a stream, has this name already."""


class UnknownNamespaceError(BrokerError):
    """No such namespace, which Iggy calls a stream."""


class OutOfOrderSequenceError(BrokerError):
    """An idempotent producer's batch does not follow its last one."""


class InvalidProducerEpochError(BrokerError):
    """A newer instance of this producer has written."""
