"""What can go wrong in the broker; each protocol maps these to its own codes in one table."""

from __future__ import annotations


class BrokerError(Exception):
    """The request can't be carried out, and nothing was changed by it."""


class DataFolderError(Exception):
    """The data folder can't be used. The message tells the operator what to do."""


class StorageError(BrokerError):
    """The disk did not do what was asked of it; to try again may help. The log line says more."""


class TopicExistsError(BrokerError):
    """A topic with this name, or with the same name in Kafka, is there already."""


class TopicNumberTakenError(TopicExistsError):
    """Its namespace has a topic of this number already."""


class UnknownTopicError(BrokerError):
    """No such topic, or it was deleted meanwhile."""


class UnknownPartitionError(BrokerError):
    """The topic has no partition of this number."""


class InvalidTopicNameError(BrokerError):
    """The name breaks a rule of the protocol that asked for it."""


class InvalidPartitionCountError(BrokerError):
    """A topic can't have this many partitions, or can't lose so many."""


class InvalidSettingError(BrokerError):
    """A topic can't be given this value of a setting: it has no such one, or it is not in effect.

    `problem` is what is wrong without the setting's name, for a protocol that calls it otherwise.
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting} {problem}")
        self.setting = setting
        self.problem = problem


class MessageTooLargeError(BrokerError):
    """The batch is larger than the topic takes."""


class TimestampTooFarAheadError(BrokerError):
    """The batch has a time that lies further ahead of the broker's clock than the topic takes."""


class TopicTerminatedError(BrokerError):
    """The topic was ended for good, and takes no more messages."""


class NamespaceExistsError(BrokerError):
    """A namespace, which Iggy calls a stream, has this name already."""


class NamespaceNumberTakenError(NamespaceExistsError):
    """A namespace has this number already."""


class UnknownNamespaceError(BrokerError):
    """No such namespace, which Iggy calls a stream."""


class OutOfOrderSequenceError(BrokerError):
    """An idempotent producer's batch does not follow its last one."""


class InvalidProducerEpochError(BrokerError):
    """A newer instance of this producer has written."""


class TooManyProducersError(BrokerError):
    """The partition remembers as many idempotent producers as it may; later there may be room."""


class UnknownTransactionError(BrokerError):
    """No producer of this id has, or may have, a transaction under this name."""


class ProducerFencedError(BrokerError):
    """A newer instance of this producer has taken its transactional id."""


class InvalidTransactionStateError(BrokerError):
    """The transaction's state does not allow this: it was not begun, or ended otherwise."""


class NotInTransactionError(InvalidTransactionStateError):
    """The producer has no transaction that is open and that this was added to."""


class InvalidWriterError(BrokerError):
    """No name of a writer, or a transactional id that does not begin with it."""


class InvalidEpochError(BrokerError):
    """Not the next epoch of its writer, or of more producers than one may have."""


class ConcurrentTransactionsError(BrokerError):
    """The producer's last transaction is about to end; a moment later it will have."""


class InvalidTransactionTimeoutError(BrokerError):
    """A transaction may not be open for so long."""


class TooManyTransactionsError(BrokerError):
    """The transaction, or the transactional id, is one more than the broker keeps."""


class InvalidGroupIdError(BrokerError):
    """A group that members join has a name."""


class UnknownGroupError(BrokerError):
    """No group has this name."""


class GroupExistsError(BrokerError):
    """The topic has a group of this name already."""


class GroupNumberTakenError(GroupExistsError):
    """The topic has a group of this number already."""


class NonEmptyGroupError(BrokerError):
    """A group is deleted only when it has no members."""


class GroupFullError(BrokerError):
    """The group, or the broker's number of groups, is at its limit."""


class NoMemoryError(BrokerError):
    """There is no memory for this now; later there may be."""


class ThrottledError(BrokerError):
    """Clients create more than they may for now; in so many `seconds` they may again."""

    what = "anything"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"more {self.what} were created than the broker allows for now; "
            f"try again in {max(1, round(seconds))} s"
        )
        self.seconds = seconds


class TopicsThrottledError(ThrottledError):
    """Topics, or partitions of them, are created too fast."""

    what = "topics and partitions"


class NamespacesThrottledError(ThrottledError):
    """Namespaces are created too fast."""

    what = "streams"


class GroupsThrottledError(ThrottledError):
    """Consumer groups are created too fast."""

    what = "consumer groups"


class IncompatibleSchemaError(BrokerError):
    """The schema is none, or can't read what the topic's last one wrote, or the other way round."""


class UnknownSchemaError(BrokerError):
    """The topic has no schema, or none of this version."""


class TooManySchemasError(BrokerError):
    """There is no room for one more version of a schema."""


class TooManyQuotasError(BrokerError):
    """There is no room for one more quota."""


class TooManyOffsetsError(BrokerError):
    """The offset is one more than the broker keeps."""


class TooManySubscriptionsError(BrokerError):
    """The subscription, or the consumer of one, is one more than the broker keeps."""


class UnknownMemberError(BrokerError):
    """The group has no such member: it left, fell silent, or the broker was started again."""


class MemberIdRequiredError(BrokerError):
    """Join again, with the member id that this error carries (KIP-394)."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"join again as {member_id}")
        self.member_id = member_id


class FencedInstanceError(BrokerError):
    """Another process with the same group instance id has taken this member's place."""


class IllegalGenerationError(BrokerError):
    """The member speaks of another generation than the group is in."""


class RebalanceInProgressError(BrokerError):
    """The member has to join again."""


class InconsistentGroupProtocolError(BrokerError):
    """The member has no protocol in common with all others."""


class InvalidSessionTimeoutError(BrokerError):
    """The member's session timeout is outside what the broker allows."""


class ConsumerBusyError(BrokerError):
    """The subscription has consumers that another one can't be added to."""


class KeyRangesError(BrokerError):
    """The keys that a consumer chooses are none, or others have them."""


class SubscriptionModeError(BrokerError):
    """A durable and a non-durable subscription can't have the same name at the same time."""


class InvalidRecordStateError(BrokerError):
    """The consumer does not hold these messages: its time with them is over, or never began."""


class TransactionConflictError(BrokerError):
    """The message is acknowledged already, or another transaction that is open has done so."""


class SubscriptionBusyError(BrokerError):
    """The subscription has other consumers, so one of them can't delete it."""
