"""Which records of a refused batch are to blame, as a producer hears it (KIP-467)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock import records
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode
from penstock.limits import KAFKA_RECORDS_NAMED
from penstock.records import field
from penstock.records.kafka.validation import KafkaFault

if TYPE_CHECKING:
    from penstock.records.columns import Mask
    from penstock.records.kafka.validation import KafkaRecordError
    from penstock.session import Buffer


def invalid(batch: Buffer, error: KafkaRecordError) -> RequestError:
    """Return the refusal of a batch in which a record was found that is not sound.

    What has no key and needs one is named with all others of its kind.
    """
    others: list[int] = []
    if error.fault is KafkaFault.NO_KEY:
        try:
            sizes = records.decode(batch, headers=False).records[field.KEY_SIZE]
        except records.MalformedBatchError:
            pass  # What lies behind it is not sound.
        else:
            others = _named(sizes < 0)
    return RequestError(ErrorCode.INVALID_RECORD, str(error), others or [error.record])


def too_late(batch: Buffer, latest_time: int) -> RequestError:
    """Return the refusal of a sound batch of which records have a time after `latest_time`, in ms,
    which is further ahead of the broker's clock than the topic takes.
    """
    times = records.decode(batch, headers=False).timestamps // 1000
    late = _named(times > latest_time)
    message = f"a time is {times.max() - latest_time} ms further ahead than the topic takes"
    return RequestError(ErrorCode.INVALID_TIMESTAMP, message, late)


def _named(at_fault: Mask) -> list[int]:
    indexes: list[int] = np.flatnonzero(at_fault)[:KAFKA_RECORDS_NAMED].tolist()
    return indexes
