"""The limits of what the broker says in its own log."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import Limit

LOG_LINES_AT_ONCE: Final = Limit(
    1_000,
    "log lines of one kind",
    protects="the disk and the processor from what clients make the broker say",
    when_hit="lines of this kind are left out until some are allowed again, and counted",
)

LOG_LINES_A_MINUTE: Final = Limit(
    60,
    "log lines of one kind after those at once",
    protects="the disk and the processor from what clients make the broker say",
    when_hit="lines of this kind are left out, and counted",
)

ADDRESS_LOG_LINES_AT_ONCE: Final = Limit(
    20,
    "log lines of one kind about clients of one address",
    protects="what is said about other clients",
    when_hit="lines of this kind about this address are left out until some are allowed again",
)

ADDRESS_LOG_LINES_A_MINUTE: Final = Limit(
    6,
    "log lines of one kind about clients of one address after those at once",
    protects="what is said about other clients",
    when_hit="lines of this kind about this address are left out, and counted",
)

SLOW_STEP_SECONDS: Final = Limit(
    1,
    "seconds that a step, such as opening a log or removing topics, takes without a word",
    protects="the operator from silence about what goes on",
    when_hit="a line says what goes on, and another one at its end how long it took",
)

STRANGER_LINE_SECONDS: Final = Limit(
    60,
    "seconds between two lines about clients of one address that came to the wrong port",
    protects="the log from clients that try again and again",
    when_hit="lines that would say the same are left out, and counted",
)

LOG_REPORT_SECONDS: Final = Limit(
    60,
    "seconds between two lines that say how many of a kind were left out",
    protects="the operator from silence about what was left out",
    when_hit="the line is written",
)
