"""How long a run takes: one word chooses all sizes and durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Scale:
    """Sizes and durations, in seconds and bytes where nothing else is said."""

    name: str
    rounds: int
    """Starts of each broker of a pair, in turn: A B A B."""
    warm_up_seconds: float
    load_seconds: float
    """Longest time that one produce load sends."""
    load_bytes_max: int
    """A produce load ends earlier when it has sent this much; consume loads read as much."""
    latency_seconds: float
    partitions: int
    """Partitions of the load with many small topics."""
    idle_connections: int
    everything: bool
    """All loads in both layouts; otherwise those that are marked as quick, in the first layout."""


SCALES: Final = {
    scale.name: scale
    for scale in (
        Scale(
            name="quick",
            rounds=1,
            warm_up_seconds=1.0,
            load_seconds=1.0,
            load_bytes_max=256 << 20,
            latency_seconds=2.0,
            partitions=100,
            idle_connections=100,
            everything=False,
        ),
        Scale(
            name="medium",
            rounds=5,
            warm_up_seconds=2.0,
            load_seconds=1.5,
            load_bytes_max=512 << 20,
            latency_seconds=4.0,
            partitions=1000,
            idle_connections=1000,
            everything=True,
        ),
        Scale(
            name="full",
            rounds=5,
            warm_up_seconds=4.0,
            load_seconds=3.0,
            load_bytes_max=1 << 30,
            latency_seconds=10.0,
            partitions=1000,
            idle_connections=1000,
            everything=True,
        ),
    )
}
