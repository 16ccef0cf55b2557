"""The producer's side of transactions, and of epochs, in which many producers' end together.

A producer sends without waiting for each answer. Where the connection fails, or the broker can't
take a batch for now, all that was not answered is sent again in its order; the broker knows each
batch by its sequence number, and stores it once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.clients.closing import Closing
from penstock.clients.kafka.connection import Posted
from penstock.clients.kafka.coordinator import ProducerState, Transactions, check_now
from penstock.clients.kafka.leaders import Leaders
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.clients.asking import Ask
    from penstock.clients.kafka.connection import ClientConnection
    from penstock.kafka.wire.messages import EndEpochRequest, ProduceRequest, ProduceResponse
    from penstock.session import Buffer

END_EPOCH: Final = api("EndEpoch")
HEARTBEAT_WRITER: Final = api("HeartbeatWriter")
PRODUCE: Final = api("Produce")

WRITER_PREFIX: Final = "penstock-writer/"
"""Begins the transactional ids of a writer's tasks (see EndEpoch)."""

IN_FLIGHT: Final = 5
"""Requests of which the broker knows the sequence numbers when they are sent again (KIP-98)."""

_NAMED_PARTITIONS_PRODUCE: Final = 11
"""The last version of Produce whose leaders report no partitions to the coordinator (KIP-890)."""

_SEQUENCES: Final = 1 << 31


Place: TypeAlias = tuple[str, int]
"""A topic's partition."""


class ProducedBatch(NamedTuple):
    """One batch with its header, and where it goes."""

    topic: str
    partition: int
    records: Buffer


_Sent: TypeAlias = "tuple[ClientConnection, Posted[ProduceRequest, ProduceResponse]]"


class TransactionalProducer:
    """One transaction of one producer, which somebody else may end.

    With `names_partitions` the coordinator hears of each partition before the first batch for it,
    as every broker takes it; else its leader reports it (KIP-890). Methods raise KafkaError for
    what a broker refused, and OSError as `ask` does.
    """

    def __init__(
        self,
        connection: ClientConnection,
        transactional_id: str,
        timeout_ms: int,
        ask: Ask,
        *,
        names_partitions: bool = False,
    ) -> None:
        self._first = connection
        self._transactions = Transactions(connection)
        self._leaders = Leaders(connection)
        self._ask = ask
        self._names_partitions = names_partitions
        self._named: set[Place] = set()
        self._unanswered: deque[Sequence[ProducedBatch]] = deque()
        self._posted: deque[list[_Sent]] = deque()
        self._sequences: dict[Place, int] = {}
        self.state = ask(lambda: self._transactions.begin(transactional_id, timeout_ms))

    def close(self) -> None:
        self._transactions.close()
        self._leaders.close()
        self._first.close()

    def sequence(self, topic: str, partition: int, records: int) -> int:
        """Return the sequence number of the next batch, which has so many records."""
        first = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = (first + records) % _SEQUENCES
        return first

    def send(self, batches: Sequence[ProducedBatch]) -> None:
        """Send at most one batch for each partition; what is refused may be raised later."""
        if self._names_partitions:
            self._name({(each.topic, each.partition) for each in batches} - self._named)
        self._unanswered.append(batches)
        self._ask(lambda: self._go_on(IN_FLIGHT - 1))

    def flush(self) -> None:
        """Return when all that was sent is safe."""
        self._ask(lambda: self._go_on(0))

    def abort(self) -> None:
        """End the transaction without effect."""
        self._forget_posted()
        self._transactions.end(self.state, committed=False)

    def _name(self, places: set[Place]) -> None:
        if places:
            self._ask(lambda: self._transactions.add(self.state, places))
            self._named |= places

    def _go_on(self, in_flight: int) -> None:
        """Send what is not sent, and hear answers until no more than so many are missing."""
        try:
            while len(self._posted) < len(self._unanswered):
                # Behind a failure halfway, all of it is forgotten.
                self._posted.append([])
                self._post(self._unanswered[len(self._posted) - 1], self._posted[-1])
            while len(self._posted) > in_flight:
                for connection, posted in self._posted[0]:
                    _check_produced(connection.collect(posted))
                self._posted.popleft()
                self._unanswered.popleft()
        except OSError:
            self._forget_posted()
            raise

    def _post(self, batches: Sequence[ProducedBatch], sent: list[_Sent]) -> None:
        by_place = {(each.topic, each.partition): each.records for each in batches}
        newest = _NAMED_PARTITIONS_PRODUCE if self._names_partitions else None
        for leader, places in self._leaders.grouped(by_place).items():
            types = PRODUCE.request
            by_topic: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
            for topic, partition in places:
                records = by_place[topic, partition]
                part = types.PartitionProduceData(index=partition, records=records)
                by_topic.setdefault(topic, []).append(part)
            data = [types.TopicProduceData(name=t, partition_data=d) for t, d in by_topic.items()]
            request = types(
                transactional_id=self.state.transactional_id,
                acks=-1,
                timeout_ms=leader.timeout_ms,
                topic_data=data,
            )
            sent.append((leader, leader.post(PRODUCE, request, newest)))

    def _forget_posted(self) -> None:
        """Hear no more answers of these connections; what they are of is sent again."""
        if self._posted:
            self._posted.clear()
            self._leaders.close()
            self._first.close()


class EndedEpoch(NamedTuple):
    """What a broker says of an epoch that was to be committed."""

    written: bool
    """False where it was committed before."""
    fingerprint: str
    """Of what was committed; empty where that is not known."""


class WriterClient(Closing):
    """What the driver and the tasks of a writer ask for beside producing; see EndEpoch."""

    def __init__(self, connection: ClientConnection, ask: Ask) -> None:
        self._connection = connection
        self._ask = ask

    def close(self) -> None:
        self._connection.close()

    def heartbeat(self, writer: str) -> int:
        """Say that a writer is at work, and return its last epoch, -1 where it has none."""
        request = HEARTBEAT_WRITER.request(writer=writer)

        def beat() -> int:
            answer = self._connection.send(HEARTBEAT_WRITER, request)
            check_now(answer.error_code, answer.error_message)
            return answer.epoch

        return self._ask(beat)

    def commit_epoch(
        self, writer: str, epoch: int, producers: Sequence[ProducerState], fingerprint: str
    ) -> EndedEpoch:
        """Commit what producers have open, and keep of what it is made.

        A broker that keeps no fingerprints answers with none.
        """
        types = END_EPOCH.request
        states = [
            types.ProducerState(transactional_id=name, producer_id=producer, producer_epoch=number)
            for name, producer, number in producers
        ]
        request = types(
            writer=writer,
            epoch=epoch,
            committed=True,
            producers=states,
            fingerprint=fingerprint,
        )
        return self._end(request)

    def abort_writer(self, writer: str) -> None:
        """Abort all that a writer has open."""
        self._end(END_EPOCH.request(writer=writer, epoch=-1, committed=False, producers=[]))

    def _end(self, request: EndEpochRequest) -> EndedEpoch:
        def end() -> EndedEpoch:
            answer = self._connection.send(END_EPOCH, request)
            check_now(answer.error_code, answer.error_message)
            return EndedEpoch(answer.written, answer.fingerprint)

        return self._ask(end)


def _check_produced(response: ProduceResponse) -> None:
    for topic in response.responses:
        for each in topic.partition_responses:
            if each.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                place = f"{topic.name}-{each.index}"
                detail = f"{place}: {each.error_message}" if each.error_message else place
                check_now(each.error_code, detail)
