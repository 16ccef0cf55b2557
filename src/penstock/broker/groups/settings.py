"""What holds for all groups of Kafka's classic protocol."""

from __future__ import annotations

from typing import NamedTuple

from penstock.limits import GROUP_MEMBERS


class GroupSettings(NamedTuple):
    """Limits and delays of all groups; times are milliseconds."""

    initial_rebalance_delay_ms: int = 100
    """How long an empty group that is joined waits for others before its first generation, again
    for each that comes. Kafka's 3 s suit a fleet that is rolled out; a person at a desk waits for
    it every time, and consumers that start together do so within a tenth of a second."""
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    members_max: int = GROUP_MEMBERS
