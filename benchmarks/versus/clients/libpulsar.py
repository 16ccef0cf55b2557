"""The C interface of pulsar-client's own library, for loads that send as fast as it goes.

Through Python each message costs a callback that has to wait for the interpreter: 20 µs a message,
five times what the library itself needs, so that the client would always be the limit. Here
messages are sent and acknowledgements counted by compiled code, which never enters the interpreter.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import numpy as np
import pulsar
from numba import (  # type: ignore[attr-defined]  # its stubs name only some
    carray,
    cfunc,
    njit,
    types,
)

from versus.clients.client import LoadError

_POINTERS: Final = (
    "pulsar_client_configuration_create",
    "pulsar_client_create",
    "pulsar_producer_configuration_create",
)
"""Functions that return a pointer, which is more than ctypes expects."""

_SENDING: Final = {
    "pulsar_message_create": 0,
    "pulsar_message_set_content": 3,
    "pulsar_producer_send_async": 4,
    "pulsar_message_free": 1,
}
"""Functions that each message takes, and how many arguments they have."""


def _library() -> ctypes.CDLL:
    folder = Path(pulsar.__file__).parents[1] / "pulsar_client.libs"
    library = ctypes.CDLL(str(next(folder.glob("libpulsar-*.so"))))
    for name in _POINTERS:
        getattr(library, name).restype = ctypes.c_void_p
    library.pulsar_message_id_free.argtypes = [ctypes.c_void_p]
    library.pulsar_message_id_free.restype = None
    for name, arguments in _SENDING.items():
        # Pointers as numbers: compiled code can't make the one of the other.
        getattr(library, name).argtypes = [ctypes.c_size_t] * arguments
        getattr(library, name).restype = None
    library.pulsar_message_create.restype = ctypes.c_size_t
    return library


class Library:
    """One client. It ends with its process."""

    def __init__(self, address: str) -> None:
        self._library = _library()
        configuration = ctypes.c_void_p(self._library.pulsar_client_configuration_create())
        url = f"pulsar://{address}".encode()
        self._client = ctypes.c_void_p(self._library.pulsar_client_create(url, configuration))
        self._outcomes = np.zeros(2, np.int64)  # acknowledged, refused
        self._acknowledged = _counter(self._library)
        self._send = _sender(self._library)

    def producer(self, topic: str, settings: dict[str, Any]) -> ctypes.c_void_p:
        """A producer with the settings that the Python client has as well."""
        configuration = ctypes.c_void_p(self._library.pulsar_producer_configuration_create())
        for name, value in {"block_if_queue_full": True, **settings}.items():
            set_value = getattr(self._library, f"pulsar_producer_configuration_set_{name}")
            set_value(configuration, ctypes.c_ulong(value))
        producer = ctypes.c_void_p()
        result = self._library.pulsar_client_create_producer(
            self._client, topic.encode(), configuration, ctypes.byref(producer)
        )
        if result:
            raise LoadError(f"there is no producer for {topic}: result {result}")
        return producer

    def send(self, producer: ctypes.c_void_p, value: bytes, count: int) -> None:
        """Send the value so many times; waits only while the producer's queue is full."""
        at = ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p).value
        outcomes = self._outcomes.ctypes.data
        self._send(producer.value, at, len(value), self._acknowledged.address, outcomes, count)

    def flush(self, producer: ctypes.c_void_p) -> None:
        """Return when all is acknowledged. Raises LoadError for what was refused."""
        result = self._library.pulsar_producer_flush(producer)
        if result or self._outcomes[1]:
            raise LoadError(f"{self._outcomes[1]} messages were refused, result {result}")


def _sender(library: ctypes.CDLL) -> Any:
    create, set_content = library.pulsar_message_create, library.pulsar_message_set_content
    send_async, free = library.pulsar_producer_send_async, library.pulsar_message_free

    @njit(types.void(*[types.uintp] * 6), nogil=True)
    def send(producer: Any, value: Any, size: Any, counter: Any, outcomes: Any, count: Any) -> None:
        for _ in range(count):
            message = create()
            set_content(message, value, size)
            send_async(producer, message, counter, outcomes)
            free(message)

    return send


def _counter(library: ctypes.CDLL) -> Any:
    free_id = library.pulsar_message_id_free

    counts = types.CPointer(types.int64)  # type: ignore[no-untyped-call]  # its stubs lack it

    @cfunc(types.void(types.int32, types.voidptr, counts))
    def acknowledged(result: Any, message_id: Any, outcomes: Any) -> None:
        free_id(message_id)
        carray(outcomes, (2,))[1 if result else 0] += 1

    return acknowledged
