"""How the releases 0.5 to 0.8 of apache-iggy say what they say differently: of stream `s` and topic
`t`, in bytes.
"""

from __future__ import annotations

import struct

import xxhash

from older_iggy import named

u32 = struct.Struct("<I").pack
u64 = struct.Struct("<Q").pack
S, T = named("s"), named("t")


class Words:
    """How one release says what the releases say differently."""

    def __init__(self, release: str) -> None:
        self.first = 1 if release == "0.5.0" else 0
        self.header = 56 if release in {"0.5.0", "0.6.0"} else 64
        self.has_kinds = self.header == 64

    def number(self, index: int) -> bytes:
        return u32(index + self.first)

    def chosen(self, number: int = 0) -> bytes:
        return u32(number) if self.first else b""

    def partition(self, index: int | None) -> bytes:
        if self.first:
            return u32(0 if index is None else index + 1)
        return struct.pack("<BI", index is not None, index or 0)

    def to(self, index: int) -> bytes:
        return b"\2\4" + self.number(index)

    def headers(self, *entries: tuple[bytes, int, bytes]) -> bytes:
        return b"".join(
            b"\2" * self.has_kinds + u32(len(key)) + key + bytes([kind]) + u32(len(value)) + value
            for key, kind, value in entries
        )

    def messages(self, *messages: tuple[bytes, bytes], origin: int = 0) -> bytes:
        index = body = b""
        for payload, headers in messages:
            body += struct.pack("<8x16x8x8xQII", origin, len(headers), len(payload))
            body += bytes(self.header - 56) + payload + headers
            index += struct.pack("<II8x", 0, len(body))
        return index + body

    def send(self, where: bytes, *payloads: bytes) -> bytes:
        sent = self.messages(*((payload, b"") for payload in payloads))
        return u32(len(S + T + where) + 4) + S + T + where + u32(len(payloads)) + sent

    def poll(
        self, consumer: bytes, index: int | None = 0, how: int = 3, value: int = 0, count: int = 10,
        commit: int = 0,
    ) -> bytes:  # fmt: skip
        return (
            consumer
            + S
            + T
            + self.partition(index)
            + struct.pack("<BQIB", how, value, count, commit)
        )


class Read:
    """One message of a poll's answer."""

    def __init__(self, body: bytes, at: int, words: Words) -> None:
        self.checksum, self.id, self.offset, self.time, self.origin, headers, payload = (
            struct.unpack_from("<Q16sQQQII", body, at)
        )
        start = at + words.header
        self.payload = body[start : start + payload]
        self.headers = body[start + payload : start + payload + headers]
        self.end = start + payload + headers
        assert self.checksum == xxhash.xxh3_64_intdigest(body[at + 8 : self.end])


def read(body: bytes, words: Words) -> tuple[int, int, list[Read]]:
    partition, current, count = struct.unpack_from("<IQI", body)
    messages: list[Read] = []
    at = 16
    while at < len(body):
        messages.append(Read(body, at, words))
        at = messages[-1].end
    assert len(messages) == count
    return partition, current, messages
