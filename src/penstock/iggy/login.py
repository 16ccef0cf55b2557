"""The first command of every session; its answers are frames of their own kind."""

from __future__ import annotations

import hmac
import logging
from typing import TYPE_CHECKING, Final

from penstock.iggy.descriptions import ROOT_USER_ID
from penstock.iggy.wire import replies
from penstock.iggy.wire.errors import IggyError
from penstock.iggy.wire.frame import ACCEPTED, EvictionReason, build_eviction, build_reply
from penstock.iggy.wire.requests import LoginRegister, LoginRegisterWithToken

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context
    from penstock.iggy.wire.frame import RequestHeader
    from penstock.session import Buffers

PROTOCOL_VERSION: Final = 11 << 10
"""0.11.0: `major << 20 | minor << 10 | patch`."""
SERVER_VERSION: Final = "0.9.0"
"""The release of apache-iggy whose protocol this is: clients look at it."""

_MINOR: Final = ~0x3FF

logger = logging.getLogger(__name__)


def log_in(context: Context, header: RequestHeader, body: memoryview) -> Buffers:
    """Answer a login: a session, or the eviction that says what is wrong with it."""
    try:
        login = _parse(body)
    except IggyError:
        return [build_eviction(header.client, EvictionReason.MALFORMED_LOGIN)]
    if login.protocol_version & _MINOR != PROTOCOL_VERSION & _MINOR:
        return [_incompatible(header.client)]
    if isinstance(login, LoginRegisterWithToken):
        return [build_eviction(header.client, EvictionReason.INVALID_TOKEN)]
    if not _credentials_match(context, login):
        logger.info("%s gave a wrong user or password", context.client.transport.peer)
        return [build_eviction(header.client, EvictionReason.INVALID_CREDENTIALS)]
    session = context.node.log_in(context.client)
    reply = replies.LoggedIn(ROOT_USER_ID, session, PROTOCOL_VERSION, SERVER_VERSION)
    return build_reply(header, [ACCEPTED, reply.encode()])


def _parse(body: memoryview) -> LoginRegister | LoginRegisterWithToken:
    # The two forms share one operation and differ only in what fills the body exactly.
    try:
        return LoginRegister.decode(body)
    except IggyError:
        return LoginRegisterWithToken.decode(body)


def _credentials_match(context: Context, login: LoginRegister) -> bool:
    settings = context.broker.settings
    # Both are compared whatever the first says, so that the time tells nothing.
    user = hmac.compare_digest(login.username.encode(), settings.iggy_user.encode())
    password = hmac.compare_digest(login.password.encode(), settings.iggy_password.encode())
    return user and password


def _incompatible(client: bytes) -> bytearray:
    return build_eviction(
        client,
        EvictionReason.INCOMPATIBLE_PROTOCOL,
        version=PROTOCOL_VERSION,
        version_min=PROTOCOL_VERSION & _MINOR,
    )
