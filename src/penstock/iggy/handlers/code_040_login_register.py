"""LOGIN_REGISTER: log in with a password and open a session; who has one goes on with it."""

from __future__ import annotations

import hmac
import logging
from typing import TYPE_CHECKING

from penstock.iggy.descriptions import ROOT_USER_ID
from penstock.iggy.handlers.registry import handles
from penstock.iggy.server import SERVER_VERSION
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call

logger = logging.getLogger(__name__)


@handles(Command.LOGIN_REGISTER, requests.LoginRegister, without_login=True)
def login_register(request: requests.LoginRegister, call: Call) -> replies.LoggedIn:
    """Open a session of the root user."""
    if not _credentials_match(request, call):
        logger.info("%s gave a wrong user or password", call.client.transport.peer)
        raise IggyError(ErrorCode.INVALID_CREDENTIALS)
    session = call.client.server.log_in(call.client)
    return replies.LoggedIn(ROOT_USER_ID, session, call.version, SERVER_VERSION)


def _credentials_match(request: requests.LoginRegister, call: Call) -> bool:
    settings = call.broker.settings
    # Both are compared whatever the first says, so that the time tells nothing.
    user = hmac.compare_digest(request.username.encode(), settings.iggy_user.encode())
    password = hmac.compare_digest(request.password.encode(), settings.iggy_password.encode())
    return user and password
