"""A topic's settings as a person may name them: in Kafka's words, Iggy's, Pulsar's or Penstock's.

Whatever name is used, the broker is asked in Kafka's, which every setting has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.cli.failure import UsageError

if TYPE_CHECKING:
    from penstock.iggy.topic_options import TopicOption


class _Policy(NamedTuple):
    """A policy of Pulsar's that means a setting; one of its units is so many of the setting's."""

    setting: str
    factor: int = 1


_PULSAR: Final = {
    "maxMessageSize": _Policy("max_message_bytes"),
    "messageTTLInSeconds": _Policy("message_ttl_ms", 1000),
    "retentionTimeInMinutes": _Policy("retention_ms", 60_000),
    "retentionSizeInMB": _Policy("retention_bytes", 1 << 20),
}


def set_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return what KEY=VALUE means, by Kafka's keys; a value of Iggy's name is Iggy's own.

    Raises UsageError.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, value = _pair(text, option)
        if key in pairs:
            raise UsageError(f'{option}: "{text}" sets {key} a second time')
        pairs[key] = value
    return pairs


def key_of(name: str, option: str) -> str:
    """Return Kafka's key of a setting. Raises UsageError for a name that no protocol has."""
    from penstock.iggy.topic_options import OPTIONS
    from penstock.kafka.topic_configs import SETTING_OF_KEY

    if name in SETTING_OF_KEY:
        return name
    iggy = OPTIONS.get(name)
    setting = name if iggy is None else iggy.setting
    if name in _PULSAR:
        setting = _PULSAR[name].setting
    for key, known in SETTING_OF_KEY.items():
        if known == setting:
            return key
    raise UsageError(
        f'{option}: a topic has no setting "{name}"; '
        "'penstock topic describe TOPIC --settings' shows all"
    )


def _pair(text: str, option: str) -> tuple[str, str]:
    from penstock.iggy.topic_options import OPTIONS

    name, found, value = text.partition("=")
    if not found or not name:
        raise UsageError(f'{option}: "{text}" is refused; what is needed is KEY=VALUE')
    key = key_of(name, option)
    if name in OPTIONS:
        value = _iggy_value(OPTIONS[name], text, value, option)
    elif name in _PULSAR:
        value = _pulsar_value(_PULSAR[name], text, value, option)
    return key, value


def _pulsar_value(policy: _Policy, text: str, value: str, option: str) -> str:
    try:
        number = int(value)
    except ValueError:
        raise UsageError(f'{option}: "{text}" is refused; in Pulsar it is a number') from None
    return str(number * policy.factor if number > 0 else number)


def _iggy_value(iggy: TopicOption, text: str, value: str, option: str) -> str:
    from penstock.broker.topics.settings import SETTINGS

    try:
        meant = iggy.to_setting(iggy.parse(value))
    except (KeyError, ValueError):
        raise UsageError(
            f'{option}: "{text}" is refused; in Iggy it is: {iggy.description.lower()}'
        ) from None
    if meant is None:
        raise UsageError(f'{option}: "{text}" sets nothing: every broker does as much')
    return SETTINGS[iggy.setting].write(meant)
