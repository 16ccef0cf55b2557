"""The states of a classic group, and what leads from one to another."""

from __future__ import annotations

from enum import Enum
from typing import Final


class GroupState(Enum):
    """The states and their names as Kafka's tools show them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupInput(Enum):
    REBALANCE = "a member came, went or changed"
    BEGIN_GENERATION = "all members have joined"
    ASSIGN = "the leader has sent the assignment"
    LOSE_ALL = "a rebalance ended with no members"
    DELETE = "the group is deleted"
    RESTORE = "the last run left a stable generation"


TRANSITIONS: Final = {
    (GroupState.EMPTY, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
    (GroupState.EMPTY, GroupInput.DELETE): GroupState.DEAD,
    (GroupState.EMPTY, GroupInput.RESTORE): GroupState.STABLE,
    (GroupState.PREPARING_REBALANCE, GroupInput.BEGIN_GENERATION): GroupState.COMPLETING_REBALANCE,
    (GroupState.PREPARING_REBALANCE, GroupInput.LOSE_ALL): GroupState.EMPTY,
    (GroupState.COMPLETING_REBALANCE, GroupInput.ASSIGN): GroupState.STABLE,
    (GroupState.COMPLETING_REBALANCE, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
    (GroupState.STABLE, GroupInput.REBALANCE): GroupState.PREPARING_REBALANCE,
}
