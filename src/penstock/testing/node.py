"""A broker on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import uvloop

from penstock.broker.broker import Broker
from penstock.server.data_folder import DataFolderLock
from penstock.server.serve import Server, broker_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from penstock.server.config import Config
    from penstock.server.connection import SessionFactory
    from penstock.server.listeners import Address

ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)

_CALL_SECONDS: Final = 30.0
"""How long the broker may take over what a test asks of it: it has hung, where it takes longer."""
_STOP_SECONDS: Final = 10.0


class Running(NamedTuple):
    """A broker that clients can connect to; all but the addresses belong to its thread."""

    loop: asyncio.AbstractEventLoop
    stop_asked: asyncio.Event
    broker: Broker
    addresses: tuple[Address, ...]


class Node:
    """Begins with its creation, which returns when clients can connect, and ends once.

    It installs no signal handlers and changes nothing of the process. In a process that was forked
    from its own it can't be used, and `stop` does nothing there.
    """

    def __init__(self, config: Config, sessions: Callable[[str, Broker], SessionFactory]) -> None:
        self._process = os.getpid()
        self._config = config
        self._sessions = sessions
        self._started: Future[Running] = Future()
        self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
        self._thread.start()
        try:
            self._running = self._started.result(_CALL_SECONDS)
        except BaseException:
            self._started.add_done_callback(_stop)
            self._thread.join(_STOP_SECONDS)
            raise

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where each protocol is served."""
        return self._running.addresses

    @property
    def broker(self) -> Broker:
        """For what runs on its event loop."""
        return self._running.broker

    def submit(self, work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
        """Run `work` in the broker's thread. Raises RuntimeError where the broker has ended."""
        if self._process != os.getpid():
            work.close()
            raise RuntimeError("the broker runs in the process that this one was forked from")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._running.loop)
        except RuntimeError:
            work.close()
            raise RuntimeError("the broker has stopped") from None

    def call(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Return what `work` returns. Raises what it raises, TimeoutError and as `submit`."""
        try:
            return self.submit(work).result(_CALL_SECONDS)
        except CancelledError:
            raise RuntimeError("the broker has stopped") from None

    def stop(self) -> None:
        """End the broker and its thread; clients that are still connected are cut."""
        if self._process != os.getpid():
            return
        _stop(self._started)
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            logger.error("the broker did not stop in %s seconds and is left alone", _STOP_SECONDS)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            if self._started.done():
                logger.exception("the broker failed")
            else:
                self._started.set_exception(error)

    async def _serve(self) -> None:
        with DataFolderLock(self._config.data_folder):
            broker = await Broker.open(self._config.data_folder, broker_settings(self._config))
            server = Server(broker, self._config, self._sessions)
            try:
                await server.start()
                stop_asked = asyncio.Event()
                loop = asyncio.get_running_loop()
                self._started.set_result(Running(loop, stop_asked, broker, server.addresses))
                await stop_asked.wait()
            finally:
                try:
                    await server.stop(seconds=0)
                finally:
                    await broker.close()


def _stop(started: Future[Running]) -> None:
    if started.exception() is not None:
        return  # It never ran.
    running = started.result()
    try:
        running.loop.call_soon_threadsafe(running.stop_asked.set)
    except RuntimeError:
        return  # It has ended.
