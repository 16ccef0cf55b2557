"""What is asked of the coordinators of transactions, of any Kafka (KIP-98, KIP-447, KIP-664).

The versions are those of before KIP-890: the end of a transaction leaves the producer's epoch as
it is, so that whoever knows the producer may ask for the same end again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.closing import Closing
from penstock.clients.kafka.connection import check
from penstock.clients.kafka.leaders import TRANSACTION, Leaders
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.clients.kafka.connection import ClientConnection

ADD_OFFSETS_TO_TXN: Final = api("AddOffsetsToTxn")
ADD_PARTITIONS_TO_TXN: Final = api("AddPartitionsToTxn")
DESCRIBE_TRANSACTIONS: Final = api("DescribeTransactions")
END_TXN: Final = api("EndTxn")
INIT_PRODUCER_ID: Final = api("InitProducerId")
LIST_TRANSACTIONS: Final = api("ListTransactions")
OFFSET_FETCH: Final = api("OffsetFetch")
TXN_OFFSET_COMMIT: Final = api("TxnOffsetCommit")

_ADD_OFFSETS_NEWEST: Final = 3
_ADD_PARTITIONS_NEWEST: Final = 3
_END_NEWEST: Final = 4
_OFFSETS_NEWEST: Final = 4
"""Of which version a broker knows that the client is of before KIP-890."""

ONGOING: Final = "Ongoing"

_LATER: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
"""What may go well a moment later."""

_UNABLE: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR})
"""Of these, what a broker answers that can't write."""


class ProducerState(NamedTuple):
    """Whose a transaction is."""

    transactional_id: str
    producer_id: int
    epoch: int


class Ongoing(NamedTuple):
    """A transaction that is open."""

    producer: ProducerState
    topics: list[str]


class KeptOffset(NamedTuple):
    """What a group keeps of a partition."""

    topic: str
    partition: int
    offset: int
    metadata: str


class Transactions(Closing):
    """Over a connection that is somebody else's. Methods raise KafkaError and OSError."""

    def __init__(self, connection: ClientConnection) -> None:
        self._leaders = Leaders(connection)

    def close(self) -> None:
        self._leaders.close()

    def begin(self, transactional_id: str, timeout_ms: int) -> ProducerState:
        """Become the producer of an id; what another one had open under it is aborted."""
        request = INIT_PRODUCER_ID.request(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        answer = self._of(transactional_id).send(INIT_PRODUCER_ID, request)
        check_now(answer.error_code, transactional_id)
        return ProducerState(transactional_id, answer.producer_id, answer.producer_epoch)

    def add(self, producer: ProducerState, places: Iterable[tuple[str, int]]) -> None:
        """Say that a transaction has messages in partitions."""
        types = ADD_PARTITIONS_TO_TXN.request
        by_topic: dict[str, list[int]] = {}
        for topic, partition in places:
            by_topic.setdefault(topic, []).append(partition)
        request = types(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[
                types.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in by_topic.items()
            ],
        )
        coordinator = self._of(producer.transactional_id)
        answer = coordinator.send(ADD_PARTITIONS_TO_TXN, request, _ADD_PARTITIONS_NEWEST)
        codes = {
            f"{topic.name}-{each.partition_index}": each.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }
        # Of partitions that could be added, it is said that they were not where others could not.
        for place in sorted(codes, key=lambda place: codes[place] == _NOT_ATTEMPTED):
            check_now(codes[place], place)

    def end(self, producer: ProducerState, *, committed: bool) -> None:
        """End a transaction; where it has ended so before, nothing happens."""
        request = END_TXN.request(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        answer = self._of(producer.transactional_id).send(END_TXN, request, _END_NEWEST)
        check_now(answer.error_code, producer.transactional_id)

    def ongoing(self, transactional_id: str) -> Ongoing | None:
        """Describe what is open under an id, None where nothing is."""
        request = DESCRIBE_TRANSACTIONS.request(transactional_ids=[transactional_id])
        answer = self._of(transactional_id).send(DESCRIBE_TRANSACTIONS, request)
        (found,) = answer.transaction_states
        if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        check_now(found.error_code, transactional_id)
        if found.transaction_state != ONGOING:
            return None
        producer = ProducerState(transactional_id, found.producer_id, found.producer_epoch)
        return Ongoing(producer, [each.topic for each in found.topics])

    def all_ongoing(self, prefix: str) -> list[str]:
        """Return the ids that begin so under which something is open."""
        request = LIST_TRANSACTIONS.request(state_filters=[ONGOING])
        found = []
        for broker in self._leaders.all():
            answer = broker.send(LIST_TRANSACTIONS, request)
            check_now(answer.error_code)
            found += [each.transactional_id for each in answer.transaction_states]
        return [each for each in found if each.startswith(prefix)]

    def keep_offset(self, producer: ProducerState, group: str, kept: KeptOffset) -> None:
        """Have a group keep this from the end of the transaction on."""
        request = ADD_OFFSETS_TO_TXN.request(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id=group,
        )
        coordinator = self._of(producer.transactional_id)
        answer = coordinator.send(ADD_OFFSETS_TO_TXN, request, _ADD_OFFSETS_NEWEST)
        check_now(answer.error_code, group)
        types = TXN_OFFSET_COMMIT.request
        part = types.TxnOffsetCommitRequestPartition(
            partition_index=kept.partition,
            committed_offset=kept.offset,
            committed_metadata=kept.metadata,
        )
        committing = types(
            transactional_id=producer.transactional_id,
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=[types.TxnOffsetCommitRequestTopic(name=kept.topic, partitions=[part])],
        )
        keeper = self._leaders.coordinator(group)
        for topic in keeper.send(TXN_OFFSET_COMMIT, committing, _OFFSETS_NEWEST).topics:
            for each in topic.partitions:
                check_now(each.error_code, f"{group} at {topic.name}-{each.partition_index}")

    def kept_offsets(self, group: str) -> list[KeptOffset]:
        """Return all that a group keeps, nothing that may still be aborted."""
        types = OFFSET_FETCH.request
        asked = types.OffsetFetchRequestGroup(group_id=group, topics=None)
        request = types(group_id=group, topics=None, groups=[asked], require_stable=True)
        answer = self._leaders.coordinator(group).send(OFFSET_FETCH, request)
        found = answer.groups[0] if answer.groups else answer
        check_now(found.error_code, group)
        kept = []
        for topic in found.topics:
            for each in topic.partitions:
                check_now(each.error_code, group)
                place = topic.name, each.partition_index
                kept.append(KeptOffset(*place, each.committed_offset, each.metadata or ""))
        return kept

    def _of(self, transactional_id: str) -> ClientConnection:
        return self._leaders.coordinator(transactional_id, TRANSACTION)


_NOT_ATTEMPTED: Final = ErrorCode.OPERATION_NOT_ATTEMPTED


def check_now(code: int, detail: str | None = None) -> None:
    """Raise ConnectionError where it may go well a moment later, and KafkaError for the rest."""
    if code in _LATER:
        why = ", and its log says why, such as a full disk" if code in _UNABLE else ""
        raise ConnectionError(f"the broker answered {ErrorCode(code).name}{why}")
    check(code, detail)
