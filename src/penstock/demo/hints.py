"""The lines that `penstock demo --keep` prints: one to try with each client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINES: Final = """
The broker stays up until Ctrl-C. In another terminal, with the same Python:

Kafka, confluent-kafka:
python -c '
from confluent_kafka import Consumer
settings = {{"bootstrap.servers": "{kafka}", "group.id": "me", "auto.offset.reset": "earliest"}}
consumer = Consumer(settings)
consumer.subscribe(["flights"])
for message in consumer.consume(3): print(message.key(), message.value())'

Pulsar, pulsar-client:
python -c '
import pulsar
client = pulsar.Client("pulsar://{pulsar}", logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
consumer = client.subscribe("flights", "me", initial_position=pulsar.InitialPosition.Earliest)
for _ in range(3): message = consumer.receive(); print(message.partition_key(), message.data())'

Iggy, apache-iggy:
python -c '
import asyncio
from apache_iggy import Consumer, IggyClient, PollingStrategy
async def main():
    client = IggyClient("{iggy}")
    await client.connect()
    await client.login_user("iggy", "iggy")
    for message in await client.poll_messages("default", "flights", consumer=Consumer.Single("me"),
            polling_strategy=PollingStrategy.First(), count=3, auto_commit=False, partition_id=0):
        print(message.user_headers(), message.payload())
asyncio.run(main())'

Spark:
penstock pipeline run flights --server {kafka} --table flights-table
"""


def lines_to_try(addresses: Mapping[str, str]) -> str:
    """Return the lines with the broker's addresses, by protocol, filled in."""
    return _LINES.format(**addresses)
