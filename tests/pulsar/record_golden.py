"""Records what the installed pulsar-client sends, for tests without it.

Run it by hand after an upgrade of the client: `python tests/pulsar/record_golden.py`.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import pulsar

from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.pulsar.session import PulsarSession
from penstock.pulsar.wire.frames import parse_frame
from penstock.server.connections import Connections
from penstock.server.listeners import Address, listen, session_factory

GOLDEN = Path(__file__).parent / "golden" / "pulsar_client.hex"
FRAME_BYTES_MAX = 2_000


def main() -> None:
    frames: list[bytes] = []
    receive = PulsarSession.receive

    def recording(session: PulsarSession, frame: memoryview) -> object:
        frames.append(bytes(frame))
        return receive(session, frame)

    PulsarSession.receive = recording  # type: ignore[method-assign, assignment]
    with tempfile.TemporaryDirectory() as folder:
        _talk(f"pulsar://127.0.0.1:{serve_in_thread(Path(folder))}")
        lines = sorted({_line(frame) for frame in frames if len(frame) <= FRAME_BYTES_MAX})
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text("".join(lines))


def serve_in_thread(folder: Path) -> int:
    """Serve a broker of its own until the process ends; return its port."""
    ready = threading.Event()
    port: list[int] = []
    thread = threading.Thread(target=lambda: asyncio.run(_serve(folder, port, ready)), daemon=True)
    thread.start()
    ready.wait()
    return port[0]


async def _serve(folder: Path, port: list[int], ready: threading.Event) -> None:
    broker = await Broker.open(folder, BrokerSettings())
    listener = await listen(
        Address("pulsar", "127.0.0.1", 0),
        session_factory("pulsar", broker),
        Connections("", broker.memory),
    )
    port.append(listener.address.port)
    ready.set()
    await asyncio.Event().wait()


def _talk(url: str) -> None:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(
        "golden",
        "sub",
        pulsar.ConsumerType.Shared,
        consumer_name="consumer",
        negative_ack_redelivery_delay_ms=100,
        batch_index_ack_enabled=True,
    )
    _publish(client)
    for index in range(9):
        message = consumer.receive(5000)
        if index == 2:
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
    consumer.acknowledge(consumer.receive(5000))
    consumer.seek(pulsar.MessageId.earliest)
    consumer.seek(1_700_000_000_000)
    consumer.unsubscribe()
    failover = client.subscribe(
        "golden",
        "failover",
        pulsar.ConsumerType.Failover,
        consumer_name="consumer",
        initial_position=pulsar.InitialPosition.Earliest,
    )
    failover.acknowledge_cumulative(failover.receive(5000))
    failover.redeliver_unacknowledged_messages()
    failover.close()
    reader = client.create_reader("golden", pulsar.MessageId.earliest, reader_name="reader")
    reader.has_message_available()
    client.close()


def _publish(client: pulsar.Client) -> None:
    single = client.create_producer("golden", producer_name="single")
    single.send(b"hello", partition_key="key", properties={"a": "b"}, event_timestamp=1_000)
    single.send(None)
    for codec in ("LZ4", "ZLib", "ZSTD", "SNAPPY"):
        compressed = client.create_producer(
            "golden",
            producer_name=codec,
            compression_type=getattr(pulsar.CompressionType, codec),
        )
        compressed.send(b"compressed " * 10)
    batched = client.create_producer("golden", producer_name="batched", batching_enabled=True)
    for number in range(3):
        batched.send_async(f"message {number}".encode(), None, partition_key=f"key {number}")
    batched.flush()


def _line(frame: bytes) -> str:
    command = parse_frame(memoryview(frame)).command
    return f"{command.Type.Name(command.type)} {frame.hex()}\n"


if __name__ == "__main__":
    main()
