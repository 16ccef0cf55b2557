"""Whose work a task is, and what servers and errors call it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.clients.access import LoginError
from penstock.clients.kafka.client import KafkaError
from penstock.clients.kafka.transactions import WRITER_PREFIX
from penstock.kafka.wire import ErrorCode
from penstock.pipeline.sink.errors import SinkError, UnreachableError
from penstock.pipeline.sink.fingerprints import Fingerprint
from penstock.pipeline.source.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.clients.asking import ResultT

Outcome: TypeAlias = tuple[str | int, ...]
"""Whose open transaction has a task's rows: a tuple of the protocol's own, which may be JSON on its
way to the driver."""

UNNAMED: Final = "write-"
"""Begins the name of a writer of one batch, of whom nobody asks again."""

CLIENT_ID: Final = "penstock-spark"
TIMEOUT_S: Final = 30.0


class Attempt(NamedTuple):
    """Whose attempt at a part of which epoch a task is."""

    writer: str
    epoch: int
    partition: int
    number: int

    @property
    def transactional_id(self) -> str:
        return f"{WRITER_PREFIX}{self.writer}/{self.partition}.{self.number}"


def once(question: Callable[[], ResultT], /) -> ResultT:
    """Ask without patience."""
    return question()


def check_epoch(writer: str, epoch: int, last: int) -> None:
    """Raise SinkError where later epochs of a writer are written than the one to be written."""
    if epoch < last:
        raise SinkError(
            f"batch {epoch} of {writer} is to be written, and batch {last} was: the checkpoint, or "
            "txnVersion, is older than what the topics hold, and can't go on with them; or another "
            "run of the same query is at work"
        )


def check_fingerprint(writer: str, epoch: int, committed: str, given: str) -> None:
    """Raise SinkError where an epoch was committed of other rows than now, or to another topic."""
    different = Fingerprint.parse(committed).differs(Fingerprint.parse(given))
    if different is not None:
        raise SinkError(_DIFFERENT[different].format(f"batch {epoch} of {writer}"))


def ended_too_soon(transaction: object, time_option: str) -> SinkError:
    """Return what to say where a transaction is over before it was decided."""
    return SinkError(
        f"nothing is written: the transaction {transaction} was ended before all tasks were done, "
        f"by another run of the same query or after {time_option}"
    )


def lost(
    attempt: tuple[str, int], transactions: Iterable[object], time_option: str, record: str
) -> SinkError:
    """Return what to say where transactions are over that were to be committed."""
    writer, epoch = attempt
    return SinkError(
        f"batch {epoch} of {writer} was decided, and its transactions "
        f"{', '.join(map(str, transactions))} ended without their rows before they could be "
        f"committed: {time_option} went by. All others are committed. To write the whole batch "
        f"once more, delete {record}"
    )


@contextmanager
def errors_in_words(servers: str) -> Iterator[None]:
    """Raise SinkError for what a broker refuses, or does not answer."""
    try:
        yield
    except KafkaError as error:
        raise SinkError(_WORDS.get(error.code, "{}").format(error)) from error
    except LoginError as error:
        raise SinkError(
            f"{error}. Correct the options kafka.sasl.mechanism and kafka.sasl.jaas.config"
        ) from error
    except OSError as error:
        words = f"the broker at {servers} does not answer as it should: {error}"
        raise UnreachableError(words) from error


@contextmanager
def refusals_in_words(who: str, refusal: type[Exception], login: str) -> Iterator[None]:
    """Raise SinkError for what a server of another protocol refuses; `login` are options."""
    try:
        yield
    except SourceError as error:
        raise SinkError(str(error)) from error
    except LoginError as error:
        raise SinkError(f"{error}. Correct {login}") from error
    except refusal as error:
        raise SinkError(f"{who} refuses: {error}") from error


_DIFFERENT: Final = {
    "rows": (
        "{} was written when it read other rows than it does now, so nothing of it is written now: "
        "the checkpoint is older than what the topics hold. Put its newest copy back; or give a "
        "new checkpoint, and starting offsets behind the rows that are written"
    ),
    "row_count": (
        "{} was written with another number of rows than it has now, so nothing of it is written "
        "now: the checkpoint, which can't be read here, may be older than what the topics hold. "
        "Then put its newest copy back. If the query makes other rows of the same input each time, "
        "go on with the option failOnDataLoss set to false"
    ),
    "topic": (
        "{} was written to another topic, so nothing of it is written now: a checkpoint, or "
        "txnAppId, belongs to one topic. Name the topic as it was; or give one of its own to what "
        "writes to this one"
    ),
}
"""What to say, by what was different of an epoch that was committed before."""

_RIGHTS: Final = (
    "{}: this sink needs the rights Write and Describe on the topics and on transactional ids that "
    f"begin with {WRITER_PREFIX}, and Read on the topics and on groups that begin so"
)
_WORDS: Final = {
    ErrorCode.UNSUPPORTED_VERSION: "{}: exactly once needs Apache Kafka 3.0 or later",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (
        "{}: kafka.transaction.timeout.ms is more than the broker's transaction_max_timeout_ms "
        "(transaction.max.timeout.ms of Apache Kafka)"
    ),
    ErrorCode.OFFSET_METADATA_TOO_LARGE: (
        "{}: the batch has more tasks than the broker's offset.metadata.max.bytes lets be noted: "
        "coalesce before the write"
    ),
    **dict.fromkeys(
        (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        _RIGHTS,
    ),
    **dict.fromkeys(
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        "{}: the transaction was ended by another run of the same query, or because nothing was "
        "heard of it for kafka.transaction.timeout.ms",
    ),
}
