"""The producer's side of transactions, and of epochs, in which many producers' end together.

A producer sends without waiting for each answer. Where the connection fails, or the broker can't
take a batch for now, all that was not answered is sent again in its order; the broker knows each
batch by its sequence number, and stores it once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from penstock.clients.closing import Closing
from penstock.clients.kafka.connection import ClientConnection, check
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.clients.kafka.connection import Posted
    from penstock.kafka.wire.messages import EndEpochRequest, ProduceRequest, ProduceResponse
    from penstock.session import Buffer

END_EPOCH: Final = api("EndEpoch")
END_TXN: Final = api("EndTxn")
HEARTBEAT_WRITER: Final = api("HeartbeatWriter")
INIT_PRODUCER_ID: Final = api("InitProducerId")
PRODUCE: Final = api("Produce")

WRITER_PREFIX: Final = "penstock-writer/"
"""Begins the transactional ids of a writer's tasks (see EndEpoch)."""

IN_FLIGHT: Final = 5
"""Requests of which the broker knows the sequence numbers when they are sent again (KIP-98)."""

TIMEOUT_S: Final = 30.0

_LATER: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""What may go well a moment later."""

_SEQUENCES: Final = 1 << 31

ResultT = TypeVar("ResultT")


class Ask(Protocol):
    """Has a question asked again where it ends with OSError, for a while."""

    def __call__(self, question: Callable[[], ResultT], /) -> ResultT: ...


class ProducerState(NamedTuple):
    """Whose a transaction is."""

    transactional_id: str
    producer_id: int
    epoch: int


class ProducedBatch(NamedTuple):
    """One batch with its header, and where it goes."""

    topic: str
    partition: int
    records: Buffer


class TransactionalProducer:
    """One transaction of one producer, which somebody else may end.

    Methods raise KafkaError for what the broker refused, and OSError as `ask` does.
    """

    def __init__(
        self, servers: str, transactional_id: str, timeout_ms: int, ask: Ask, client_id: str
    ) -> None:
        self._connection = ClientConnection(servers, client_id, TIMEOUT_S)
        self._ask = ask
        self._unanswered: deque[ProduceRequest] = deque()
        self._posted: deque[Posted[ProduceRequest, ProduceResponse]] = deque()
        self._sequences: dict[tuple[str, int], int] = {}
        request = INIT_PRODUCER_ID.request(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )

        def initialise() -> ProducerState:
            answer = self._connection.send(INIT_PRODUCER_ID, request)
            check_now(answer.error_code)
            return ProducerState(transactional_id, answer.producer_id, answer.producer_epoch)

        self.state = ask(initialise)

    def close(self) -> None:
        self._connection.close()

    def sequence(self, topic: str, partition: int, records: int) -> int:
        """Return the sequence number of the next batch, which has so many records."""
        first = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = (first + records) % _SEQUENCES
        return first

    def send(self, batches: Sequence[ProducedBatch]) -> None:
        """Send at most one batch for each partition; what is refused may be raised later."""
        types = PRODUCE.request
        by_topic: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
        for topic, partition, records in batches:
            part = types.PartitionProduceData(index=partition, records=records)
            by_topic.setdefault(topic, []).append(part)
        data = [types.TopicProduceData(name=t, partition_data=d) for t, d in by_topic.items()]
        self._unanswered.append(
            types(
                transactional_id=self.state.transactional_id,
                acks=-1,
                timeout_ms=self._connection.timeout_ms,
                topic_data=data,
            )
        )
        self._ask(lambda: self._go_on(IN_FLIGHT - 1))

    def flush(self) -> None:
        """Return when all that was sent is safe."""
        self._ask(lambda: self._go_on(0))

    def abort(self) -> None:
        """End the transaction without effect."""
        request = END_TXN.request(
            transactional_id=self.state.transactional_id,
            producer_id=self.state.producer_id,
            producer_epoch=self.state.epoch,
            committed=False,
        )
        self._forget_posted()
        check_now(self._connection.send(END_TXN, request).error_code)

    def _go_on(self, in_flight: int) -> None:
        """Send what is not sent, and hear answers until no more than so many are missing."""
        try:
            while len(self._posted) < len(self._unanswered):
                request = self._unanswered[len(self._posted)]
                self._posted.append(self._connection.post(PRODUCE, request))
            while len(self._posted) > in_flight:
                _check_produced(self._connection.collect(self._posted[0]))
                self._posted.popleft()
                self._unanswered.popleft()
        except OSError:
            self._forget_posted()
            raise

    def _forget_posted(self) -> None:
        """Hear no more answers of this connection; what they are of is sent again."""
        if self._posted:
            self._posted.clear()
            self._connection.close()


class WriterClient(Closing):
    """What the driver and the tasks of a writer ask for beside producing; see EndEpoch."""

    def __init__(self, servers: str, ask: Ask, client_id: str) -> None:
        self._connection = ClientConnection(servers, client_id, TIMEOUT_S)
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

    def commit_epoch(self, writer: str, epoch: int, producers: Sequence[ProducerState]) -> bool:
        """Commit what producers have open; False where that epoch was committed before."""
        types = END_EPOCH.request
        states = [
            types.ProducerState(transactional_id=name, producer_id=producer, producer_epoch=number)
            for name, producer, number in producers
        ]
        return self._end(types(writer=writer, epoch=epoch, committed=True, producers=states))

    def abort_writer(self, writer: str) -> None:
        """Abort all that a writer has open."""
        self._end(END_EPOCH.request(writer=writer, epoch=-1, committed=False, producers=[]))

    def _end(self, request: EndEpochRequest) -> bool:
        def end() -> bool:
            answer = self._connection.send(END_EPOCH, request)
            check_now(answer.error_code, answer.error_message)
            return answer.written

        return self._ask(end)


def check_now(code: int, detail: str | None = None) -> None:
    """Raise ConnectionError where it may go well a moment later, and KafkaError for the rest."""
    if code in _LATER:
        raise ConnectionError(f"the broker answered {ErrorCode(code).name}")
    check(code, detail)


def _check_produced(response: ProduceResponse) -> None:
    for topic in response.responses:
        for each in topic.partition_responses:
            if each.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                place = f"{topic.name}-{each.index}"
                detail = f"{place}: {each.error_message}" if each.error_message else place
                check_now(each.error_code, detail)
