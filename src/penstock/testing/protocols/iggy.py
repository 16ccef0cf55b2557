"""Faults in Iggy's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from penstock.iggy.handlers import HANDLERS
from penstock.iggy.lookups import find_topic
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.testing.protocols.dialect import by_plain_name, number

if TYPE_CHECKING:
    from penstock.iggy.session import IggyRequest

_ERRORS: Final = {code.name: int(code) for code in ErrorCode if code is not ErrorCode.OK}


class IggyDialect:
    """A `penstock.testing.protocols.dialect.Dialect`."""

    requests = by_plain_name(command.name for command in HANDLERS)

    def error(self, request: str, name: str | int) -> int:
        del request  # Each may fail.
        return number(name, _ERRORS)

    def name(self, request: IggyRequest) -> str:
        return request.codec.command(request.asked).name

    def topics(self, request: IggyRequest) -> set[str]:
        asked = request.codec.decode(
            request.asked, HANDLERS[request.codec.command(request.asked)].request
        )
        stream, topic = getattr(asked, "stream", None), getattr(asked, "topic", None)
        if stream is None or topic is None:
            return set()
        try:
            return {find_topic(request.call.broker, stream, topic).name.kafka}
        except IggyError:
            return set()

    def fail(self, request: IggyRequest, error: int) -> NoReturn:
        del request
        raise IggyError(ErrorCode(error), "a test asked for it")
