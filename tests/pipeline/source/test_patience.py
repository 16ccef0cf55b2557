from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.pipeline.source import patience
from penstock.pipeline.source.patience import Patience


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(patience, "WAIT_SECONDS", 5)


def failing(times: int) -> Callable[[], str]:
    answers = iter([ConnectionResetError()] * times)

    def question() -> str:
        for error in answers:
            raise error
        return "answer"

    return question


def test_a_first_connection_that_fails_is_told_at_once() -> None:
    with pytest.raises(ConnectionResetError):
        Patience(answered=False).ask(failing(1))


def test_a_broker_that_has_answered_is_waited_for() -> None:
    waiting = Patience(answered=False)
    assert waiting.ask(failing(0)) == "answer"
    assert waiting.ask(failing(20)) == "answer"


def test_a_broker_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "WAIT_SECONDS", -1)
    with pytest.raises(ConnectionResetError):
        Patience(answered=True).ask(failing(2))
