"""The life of a broker process: open, serve, and stop in named phases with a deadline."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.allocator import keep_freed_memory
from penstock.broker.advertised import advertised_listeners
from penstock.broker.broker import Broker
from penstock.broker.errors import DataFolderError
from penstock.broker.retention.policy import QuotaPolicy
from penstock.broker.settings import Anonymous, BrokerSettings, Flush
from penstock.broker.transactions.settings import TransactionSettings
from penstock.log import LogConfig
from penstock.records.kernels import library as kernel_library
from penstock.server.connections import Connections
from penstock.server.data_folder import DataFolderLock
from penstock.server.garbage import Garbage
from penstock.server.interpreter import share_between_threads
from penstock.server.listeners import PROTOCOLS, Address, Listener, listen, session_factory
from penstock.server.log_lines import limit_log_lines
from penstock.server.machine import default_budget, resident_bytes
from penstock.server.watchdog import Watchdog
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from penstock.memory import Memory
    from penstock.server.config import Config
    from penstock.server.connection import SessionFactory

logger = logging.getLogger(__name__)

EXIT_INTERRUPTED_TWICE: Final = 130
_EXPOSED: Final = (
    "listening on %s: whoever reaches these ports reads and writes every topic, for there is no "
    "security yet; keep strangers out by a firewall, or listen on 127.0.0.1"
)
_NOT_MEASURED: Final = (
    "/proc is not mounted, so what the process takes beyond what it accounts for is not measured: "
    "it may take more than memory_bytes; mount /proc and start again"
)


@dataclass(frozen=True)
class Ready:
    """What a broker that can be used tells about itself."""

    addresses: tuple[Address, ...]
    config: Config


class Server:
    """The listeners and connections in front of one broker.

    It touches nothing that belongs to the whole process, in which there may be others. `sessions`
    makes, for the name of a protocol and the broker, what makes the session of each connection.
    """

    def __init__(
        self,
        broker: Broker,
        config: Config,
        sessions: Callable[[str, Broker], SessionFactory] = session_factory,
    ) -> None:
        self._broker = broker
        self._config = config
        self._sessions = sessions
        self._connections = _connections(config, broker.memory)
        self._listeners: list[Listener] = []
        self._tasks = Tasks()

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where each protocol is served, with the real ports."""
        return tuple(listener.address for listener in self._listeners)

    async def start(self) -> None:
        """Open all ports. Raises ListenError; `stop` is needed in any case."""
        for protocol in PROTOCOLS:
            address = Address(protocol, self._config.host, _port(self._config, protocol))
            sessions = self._sessions(protocol, self._broker)
            listener = await listen(address, sessions, self._connections)
            self._listeners.append(listener)
            self._connections.ports[protocol] = listener.address.port
        if any(listener.is_exposed for listener in self._listeners):
            logger.warning(_EXPOSED, self._config.host)
        self._tasks.start(self._connections.sweep_for_ever(), "connection deadlines")

    async def stop(self, seconds: float = limits.SHUTDOWN_SECONDS) -> None:
        """End in order: nothing new, what was asked is answered in time, the rest is cut."""
        _phase("no new connections are accepted")
        for listener in self._listeners:
            listener.close()
        _phase(f"{len(self._connections)} connections finish what they were asked")
        if not await self._connections.finish(seconds):
            _phase(f"{len(self._connections)} connections did not finish in time and are cut")
        await self._connections.cut()
        self._tasks.cancel()
        await self._tasks.ended()


async def serve(config: Config, started: Callable[[Ready], None]) -> None:
    """Serve until SIGINT or SIGTERM. `started` is called once, when clients can connect.

    Raises DataFolderError, ListenError, KernelsError and what Broker.open raises.
    """
    _outlive_hang_ups()
    kernel_library.require()
    _allow_open_files()
    share_between_threads()
    keep_freed_memory(config.memory_bytes or default_budget())
    with DataFolderLock(config.data_folder) as lock:
        broker = await Broker.open(config.data_folder, broker_settings(config))
        # Only now: a recovery that takes long keeps the event loop from hearing of signals, and
        # may be ended by them as a crash would.
        stop_asked = _stop_on_signals()
        server = Server(broker, config)
        log_lines, reports = limit_log_lines(), Tasks()
        garbage = Garbage()
        watchdog = Watchdog()
        try:
            await server.start()
            reports.start(log_lines.report_for_ever(), "log lines that were left out")
            _measure(broker.memory)
            garbage.start()
            watchdog.start()
            started(Ready(server.addresses, config))
            await _until_stopped(stop_asked, lock)
        finally:
            watchdog.stop()
            garbage.stop()
            began = time.monotonic()
            await _each(server.stop, lambda: _close(broker))
            reports.cancel()
            log_lines.report()
            logger.info("stopped in %.2f s", time.monotonic() - began)


def _measure(memory: Memory) -> None:
    """Have the budget know what the process really has, where the system tells."""
    resident = resident_bytes()
    if resident is None:
        logger.warning(_NOT_MEASURED)
    else:
        memory.set_resident(resident)


async def _until_stopped(stop_asked: asyncio.Event, lock: DataFolderLock) -> None:
    """Return when a stop is asked for. Raises DataFolderError when the data folder is gone."""
    lost, tasks = asyncio.Event(), Tasks()

    async def watch() -> None:
        await lock.lost()
        lost.set()
        stop_asked.set()

    tasks.start(watch(), "looking after the data folder")
    await stop_asked.wait()
    tasks.cancel()
    if lost.is_set():
        raise DataFolderError(
            f"the data folder {lock.folder} was removed or replaced under the broker, which stops"
        )


async def _close(broker: Broker) -> None:
    _phase("logs and database are flushed and closed")
    await broker.close()


async def _each(*steps: Callable[[], Awaitable[None]]) -> None:
    # A step that fails must not keep the next from making its data durable.
    failure: BaseException | None = None
    for step in steps:
        try:
            await step()
        except Exception as error:
            logger.exception("stopping: a step failed")
            failure = failure or error
    if failure is not None:
        raise failure


def _allow_open_files() -> None:
    # Connections and segments need more than the 1024 that are common.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, limits.OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def _connections(config: Config, memory: Memory) -> Connections:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_all = min(limits.CONNECTIONS, files * limits.CONNECTION_FILES_PERCENT // 100)
    of_address = config.address_connections or max(1, in_all // 2)
    return Connections(config.advertised_host, memory, in_all, of_address)


def _outlive_hang_ups() -> None:
    # Its terminal may go without taking the broker along.
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGHUP,
        lambda: logger.info("SIGHUP: nothing to do; settings are read at the start only"),
    )


def _stop_on_signals() -> asyncio.Event:
    asked = asyncio.Event()

    def stop(name: str) -> None:
        if asked.is_set():
            # The operator insists. What was acknowledged is on stable storage already.
            os._exit(EXIT_INTERRUPTED_TWICE)
        logger.info("%s: stopping; once more ends at once", name)
        asked.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number.name)
    return asked


def _port(config: Config, protocol: str) -> int:
    port = getattr(config, f"{protocol}_port")
    assert isinstance(port, int)
    return port


def broker_settings(config: Config) -> BrokerSettings:
    """Return what of the node's settings the broker needs."""
    return BrokerSettings(
        auto_create_topics=config.auto_create_topics,
        default_partitions=config.default_partitions,
        flush=Flush(config.flush),
        log=LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            segment_jitter_ms=config.segment_jitter_ms,
            file_delete_delay_ms=config.file_delete_delay_ms,
            flush_interval_seconds=config.flush_interval_ms / 1000,
        ),
        retention_ms=config.retention_ms,
        retention_bytes=config.retention_bytes,
        retention_topic_bytes=config.retention_topic_bytes,
        retention_check_ms=config.retention_check_ms,
        compaction_check_ms=config.compaction_check_ms,
        compaction_bytes_per_second=config.compaction_bytes_per_second,
        message_ttl_ms=config.message_ttl_ms,
        backlog_quota_bytes=config.backlog_quota_bytes,
        backlog_quota_ms=config.backlog_quota_ms,
        backlog_quota_policy=QuotaPolicy(config.backlog_quota_policy),
        transactions=TransactionSettings(
            config.transaction_max_timeout_ms, config.transactional_id_expiration_ms
        ),
        memory_bytes=config.memory_bytes or default_budget(),
        pulsar_message_bytes=config.pulsar_message_bytes,
        pulsar_advertised_listeners=advertised_listeners(config.pulsar_advertised_listeners),
        iggy_user=config.iggy_user,
        iggy_password=config.iggy_password,
        iggy_anonymous=Anonymous(config.iggy_anonymous),
    )


def _phase(what: str) -> None:
    logger.info("stopping: %s", what)
