"""GET_PERSONAL_ACCESS_TOKENS: there are none, because none can be made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_PERSONAL_ACCESS_TOKENS, requests.Empty)
def get_personal_access_tokens(_request: requests.Empty, _call: Call) -> None:
    """Answer with an empty list."""
