"""Records what old clients send, into `golden/*.hex`: run it as a script where they are at hand.

    PYTHONPATH=src:tests/support:benchmarks python tests/kafka/record_old_clients.py

A line is the name and version of an API and one request, in the order in which they came. Those of
members of groups are left out: they name members, whose ids each broker makes up anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from old_clients import OldClient, kafka_python, of_java, of_node
from penstock.kafka import session
from penstock.kafka.wire import decode_request
from penstock.testing import Penstock

GOLDEN: Final = Path(__file__).parent / "golden"
TOPIC: Final = "golden"
COUNT: Final = 12
MAX_BYTES: Final = 400
LEFT_OUT: Final = {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"}
WRITES_ONLY: Final = {"no_kafka"}
"""Its only consumer is a member of a group."""


def recorded(client: OldClient, codecs: tuple[str, ...], *, reads: bool) -> list[bytes]:
    frames: list[bytes] = []
    receive = session.KafkaSession.receive

    def keep(self: session.KafkaSession, frame: memoryview) -> session.KafkaRequest:
        frames.append(bytes(frame))
        return receive(self, frame)

    with pytest.MonkeyPatch.context() as patch, Penstock() as broker:
        broker.create_topic(TOPIC)
        patch.setattr(session.KafkaSession, "receive", keep)
        for codec in codecs:
            client.produce(broker.kafka, TOPIC, COUNT, codec, 1)
        if reads:
            client.consume(broker.kafka, TOPIC, (COUNT + 1) * len(codecs), "readers", MAX_BYTES)
    return frames


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    plain = ("none", "gzip")
    clients = {
        "kafka_python_0_9_5": (kafka_python("0.9.5", "2.7"), plain),
        "kafka_python_1_4": (kafka_python("1.4.7", "3.6", "0.8.2"), plain),
        "no_kafka": (of_node("no-kafka", "3.4.4"), (*plain, "snappy")),
        "kafka_node": (of_node("kafka-node", "5.0.0"), plain),
        "kafka_0_8_2": (of_java(), (*plain, "snappy")),
    }
    for name, (client, codecs) in clients.items():
        lines = []
        for frame in recorded(client, codecs, reads=name not in WRITES_ONLY):
            header, _ = decode_request(frame)
            if header.api.name not in LEFT_OUT:
                lines.append(f"{header.api.name} {header.version} {frame.hex()}\n")
        (GOLDEN / f"{name}.hex").write_text("".join(lines))


if __name__ == "__main__":
    main()
