"""One file a command, named by its number on the wire; importing this registers them all."""

from penstock.pulsar.handlers.registry import HANDLERS
from penstock.requests.registry import register_all

register_all(__name__, __path__)

__all__ = ["HANDLERS"]
