"""GET_PERSONAL_ACCESS_TOKENS: there are none, because none can be made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.GET_PERSONAL_ACCESS_TOKENS, requests.Empty)
async def get_personal_access_tokens(_context: Context, _request: requests.Empty) -> None:
    """Answer with an empty list."""
