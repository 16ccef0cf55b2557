"""The Python that Spark starts beside each stream, which connects before it imports anything.

Spark waits ten seconds for that connection, whatever else the machine has to do, and then as long
as need be. What has to be imported takes one to two seconds of a core that has nothing else to do.
"""

from __future__ import annotations

import os
import runpy
import socket
from typing import Any, Final

RUNNER: Final = "pyspark.sql.streaming.python_streaming_source_runner"
"""Which `worker_python.sh` has this module run."""

_PLACE: Final = "PYTHON_WORKER_FACTORY_SOCK_PATH"
"""In the environment: where Spark listens; it is not there where Spark listens at a port."""


def _connect_to(place: str) -> None:
    """Connect, and have the socket that is connected to that place later be this one."""
    early = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    early.connect(place)
    connect_anew = socket.socket.connect

    def connect(late: socket.socket, address: Any) -> None:
        if address != place:
            connect_anew(late, address)
            return
        os.dup2(early.fileno(), late.fileno(), inheritable=False)
        early.close()

    socket.socket.connect = connect  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    if _PLACE in os.environ:
        _connect_to(os.environ[_PLACE])
    runpy.run_module(RUNNER, run_name="__main__", alter_sys=True)
