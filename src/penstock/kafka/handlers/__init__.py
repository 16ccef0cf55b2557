"""One file an API, numbered as on the wire; importing this package registers them all."""

from penstock.kafka.handlers.registry import HANDLERS
from penstock.requests.registry import register_all

register_all(__name__, __path__)

__all__ = ["HANDLERS"]
