"""A broker inside the process of a test-suite: `with Penstock() as broker:`; see docs/testing.md.

The fixtures of its pytest plugin are in `penstock.pytest_plugin`.
"""

from penstock.testing.broker import Penstock
from penstock.testing.faults import Fault
from penstock.testing.protocols.dialect import UnknownNameError
from penstock.testing.record import Record

__all__ = ["Fault", "Penstock", "Record", "UnknownNameError"]
