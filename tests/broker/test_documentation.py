"""Goal: docs/topics.md lists every setting of a topic as it is, under all its names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.settings import FOREVER, SETTINGS, Effect, Kind, Setting
from penstock.iggy.topic_options import OPTIONS
from penstock.kafka.topic_configs import SETTING_OF_KEY

PAGE = Path(__file__).parents[2] / "docs" / "topics.md"
KAFKA = {setting: key for key, setting in SETTING_OF_KEY.items()}
IGGY = {option.setting: name for name, option in OPTIONS.items()}
PULSAR = {
    "max_message_bytes": "maxMessageSize",
    "message_ttl_ms": "messageTTLInSeconds",
    "retention_ms": "retentionTimeInMinutes",
    "retention_bytes": "retentionSizeInMB",
}
"""Policies that mean a setting; no client can set them yet."""


def rows() -> Iterator[str]:
    for name, setting in SETTINGS.items():
        names = (f"`{table[name]}`" if name in table else "" for table in (KAFKA, PULSAR, IGGY))
        yield (
            f"| `{name}` | {' | '.join(names)} | {values(setting)} | {default(setting)} "
            f"| {in_effect(setting)} | {setting.meaning} |"
        )


def values(setting: Setting) -> str:
    if setting.kind in {Kind.TEXT, Kind.LIST}:
        several = " (several)" if setting.kind is Kind.LIST else ""
        return (", ".join(f"`{choice}`" for choice in setting.choices) or "text") + several
    if setting.kind is Kind.BOOLEAN:
        return "`true`, `false`"
    unit = f" of {setting.unit}" if setting.unit else ""
    return f"{setting.kind}{unit}, {amount(setting.least)} to {amount(setting.most)}"


def amount(value: float) -> str:
    return "2^63 - 1" if value == FOREVER else f"{value:,}"


def default(setting: Setting) -> str:
    value = setting.default_on(BrokerSettings())
    shown = "2^63 - 1" if value == FOREVER else setting.write(value)
    if callable(setting.default):
        return f"the node's, `{shown}`"
    if setting.default_of is not None:
        return f"`{shown}` for a {setting.default_of.name.capitalize()} client's, else none"
    return f"`{shown}`" if shown else ""


def in_effect(setting: Setting) -> str:
    if setting.effect is Effect.IN_EFFECT:
        return "yes"
    return f"no: {setting.instead}; {setting.effect}"


def test_the_table_is_that_of_the_catalogue() -> None:
    table = "\n".join(rows())
    assert table in PAGE.read_text(encoding="utf-8"), f"the table should be:\n{table}"


def test_every_name_of_a_protocol_is_that_of_one_setting() -> None:
    for table, names in ((KAFKA, SETTING_OF_KEY), (IGGY, OPTIONS)):
        assert len(table) == len(names)
        assert table.keys() <= SETTINGS.keys()
    assert KAFKA.keys() | IGGY.keys() == SETTINGS.keys()
