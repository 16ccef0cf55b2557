"""What the measuring process tells a load generator, and what that answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from versus.loads import Kind


@dataclass(frozen=True)
class Order:
    """One load for one broker, complete in itself so that a fresh process can run it."""

    protocol: str
    address: str
    kind: Kind
    topic: str
    value_bytes: int
    tuned: bool
    seconds: float
    bytes_max: int
    count: int
    """Messages to consume."""
    rate: int
    window: int
    partitions: int
    transaction: int
    """Messages of a transaction."""
    topic_options: dict[str, str]
    """Settings that a broker takes per topic and not per node."""

    @property
    def count_max(self) -> int:
        return max(1, self.bytes_max // self.value_bytes)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**{**fields, "kind": Kind(fields["kind"])})


@dataclass
class Done:
    """What a load came to."""

    messages: int
    seconds: float
    latencies_ns: list[int] = field(default_factory=list)
    """One per message in order of sending, from the time at which it was due."""
    extra: dict[str, Any] = field(default_factory=dict)
