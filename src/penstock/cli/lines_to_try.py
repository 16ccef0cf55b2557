"""What `penstock serve` shows: a command for each protocol that writes a first message.

That of Kafka needs nothing but Penstock; the others need a client of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.server.listeners import Address

# apache-iggy 0.9 now and then aborts when Python ends right after its last answer: hence the sleep.
_LINES: Final = {
    "kafka": "echo hello | penstock produce hello --server {address}",
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
_CLIENTS: Final = {"pulsar": "pulsar-client", "iggy": "apache-iggy"}
_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here


def line_to_try(address: Address, user: str, password: str) -> str:
    """Return the command that writes `hello` to the topic `hello` through one protocol."""
    line = _LINES[address.protocol]
    return line.format(address=_reachable(address), user=user, password=password)


def heading(address: Address) -> str:
    """Return what stands before the command: an address, and what has to be installed."""
    client = _CLIENTS.get(address.protocol)
    needs = f", with pip install {client}" if client else ""
    return f"{address.protocol.capitalize()} on {address}{needs}:"


def read_all(kafka: Address) -> str:
    """Return the command that shows what all of them wrote."""
    return f"penstock consume hello --server {_reachable(kafka)}"


def _reachable(address: Address) -> str:
    return str(address).replace(address.host, _ANY_HOST.get(address.host, address.host))
