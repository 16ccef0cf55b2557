"""Goal: what pipelines ask of writers' epochs is answered in Kafka's codes."""

from __future__ import annotations

import pytest

from kafka_dialog import Dialog
from penstock.kafka.wire import ErrorCode, api
from penstock.log.errors import LogFailedError

STATE = api("EndEpoch").request.ProducerState
NAME = "penstock-writer/q/0"


async def end(
    dialog: Dialog, epoch: int, *producers: object, writer: str = "q"
) -> tuple[int, bool]:
    answer = await dialog.ask(
        "EndEpoch", 0, writer=writer, epoch=epoch, committed=True, producers=list(producers)
    )
    return answer.error_code, answer.written


async def test_epochs_are_committed_once(dialog: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    await dialog.create_topic("orders", partitions=1)
    made = await dialog.ask(
        "InitProducerId", 5, transactional_id=NAME, transaction_timeout_ms=60_000
    )
    state = STATE(transactional_id=NAME, producer_id=made.producer_id, producer_epoch=0)
    assert await end(dialog, 4, state) == (ErrorCode.INVALID_TXN_STATE, False)
    assert await end(dialog, 4, state, state) == (ErrorCode.INVALID_REQUEST, False)
    assert await end(dialog, 4, state, writer="r") == (ErrorCode.INVALID_REQUEST, False)
    assert await end(dialog, 4) == (ErrorCode.NONE, True)
    assert await end(dialog, 4) == (ErrorCode.NONE, False)
    assert await end(dialog, 3) == (ErrorCode.INVALID_TXN_STATE, False)
    heard = await dialog.ask("HeartbeatWriter", 0, writer="q")
    assert (heard.error_code, heard.epoch) == (ErrorCode.NONE, 4)
    heard = await dialog.ask("HeartbeatWriter", 0, writer="a/b")
    assert (heard.error_code, heard.epoch) == (ErrorCode.INVALID_REQUEST, -1)
    aborted = await dialog.ask("EndEpoch", 0, writer="q", epoch=9, committed=False, producers=[])
    assert (aborted.error_code, aborted.written) == (ErrorCode.NONE, False)

    made_of = {"committed": True, "producers": [], "fingerprint": "of these"}
    for epoch, found in ((4, ""), (5, "of these")):
        answer = await dialog.ask("EndEpoch", 1, writer="q", epoch=epoch, **made_of)
        assert (answer.written, answer.fingerprint) == (epoch == 5, found)

    async def fail(*_: object) -> bool:
        raise LogFailedError("the disk is gone")

    monkeypatch.setattr(dialog.broker.epochs, "commit", fail)
    assert await end(dialog, 6) == (ErrorCode.TRANSACTION_ABORTABLE, False)
