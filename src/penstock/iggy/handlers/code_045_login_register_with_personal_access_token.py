"""LOGIN_REGISTER_WITH_PERSONAL_ACCESS_TOKEN: no token is valid, because none can be made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(
    Command.LOGIN_REGISTER_WITH_PERSONAL_ACCESS_TOKEN,
    requests.LoginRegisterWithToken,
    without_login=True,
)
def login_register_with_token(_request: requests.LoginRegisterWithToken, _call: Call) -> None:
    """Refuse the token."""
    raise IggyError(ErrorCode.INVALID_PERSONAL_ACCESS_TOKEN)
