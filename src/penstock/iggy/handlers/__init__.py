"""Commands, one file each, named by the command's code; importing this registers them all."""

from penstock.iggy.handlers.registry import HANDLERS
from penstock.requests.registry import register_all

register_all(__name__, __path__)

__all__ = ["HANDLERS"]
