"""What `penstock serve` shows: a command for each protocol that writes a first message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.server.listeners import Address

# apache-iggy 0.9 now and then aborts when Python ends right after its last answer: hence the sleep.
_LINES: Final = {
    "kafka": "echo hello | kcat -P -b {address} -t hello",
    "pulsar": (
        'python -c \'import pulsar; client = pulsar.Client("pulsar://{address}"); '
        'client.create_producer("hello").send(b"hello"); client.close()\''
    ),
    "iggy": """python -c '
import asyncio, apache_iggy as iggy
async def main():
    client = iggy.IggyClient.from_connection_string("iggy://{user}:{password}@{address}")
    await client.connect()
    await client.get_stream("default") or await client.create_stream("default")
    await client.get_topic("default", "hello") or await client.create_topic("default", "hello", 1)
    message = iggy.SendMessage("hello")
    await client.send_messages("default", "hello", iggy.Partitioning.balanced(), [message])
    await asyncio.sleep(0.1)
asyncio.run(main())'""",
}
_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here


def line_to_try(address: Address, user: str, password: str) -> str:
    """Return the command that writes `hello` to the topic `hello` through one protocol."""
    place = str(address).replace(address.host, _ANY_HOST.get(address.host, address.host))
    return _LINES[address.protocol].format(address=place, user=user, password=password)


def read_all(kafka: Address) -> str:
    """Return the command that shows what all of them wrote."""
    return f"penstock consume hello --server {kafka}"
