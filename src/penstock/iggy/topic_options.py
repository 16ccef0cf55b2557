"""A topic's settings as Iggy's options: what a client may set, in which form, and what it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.broker.retention.policy import NO_LIMIT
from penstock.broker.settings import Flush
from penstock.broker.topics.settings import SETTINGS, Value
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.options import Typed, ValueKind

if TYPE_CHECKING:
    from penstock.broker.settings import BrokerSettings
    from penstock.broker.topics.config import TopicConfig

FOREVER: Final = (1 << 64) - 1
"""As an expiry: never. As a size: unlimited."""
SERVER_DEFAULT: Final = 0
"""As an expiry and as a topic's size: what the server thinks best."""

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_SECTOR: Final = 512
_SIZE_UNITS: Final = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
    "kib": _KIB,
    "mib": _MIB,
    "gib": _GIB,
    "tib": _GIB * _KIB,
}
_MICROSECONDS: Final = {
    "us": 1,
    "ms": 1000,
    "s": 10**6,
    "sec": 10**6,
    "second": 10**6,
    "m": 60 * 10**6,
    "min": 60 * 10**6,
    "minute": 60 * 10**6,
    "h": 3600 * 10**6,
    "hr": 3600 * 10**6,
    "hour": 3600 * 10**6,
    "d": 86400 * 10**6,
    "day": 86400 * 10**6,
    "week": 7 * 86400 * 10**6,
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_SPAN: Final = re.compile(r"(\d+)\s*([a-z]+?)s?(?=[\s\d]|$)", re.IGNORECASE)
_COMPRESSIONS: Final = {"none": 1, "gzip": 2}


OptionValue: TypeAlias = int | str | bool


def _same(value: Value) -> OptionValue:
    assert not isinstance(value, float), "no option is a fraction"
    return value


class TopicOption(NamedTuple):
    """One option, and the setting that it is.

    `parse` brings what a client wrote as text into the option's own kind; `names` are what a byte
    may say instead of a text. `to_setting` and `from_setting` go between that and the setting's
    values; None sets nothing. `unset` is what the option says where nothing is set, if it is not
    what the setting's default says.
    """

    setting: str
    kind: ValueKind
    description: str
    parse: Callable[[str], OptionValue]
    to_setting: Callable[[OptionValue], Value | None] = lambda value: value
    from_setting: Callable[[Value], OptionValue] = _same
    unset: OptionValue | None = None
    updatable: bool = False
    zero_is_default: bool = False
    allowed: Callable[[int], bool] = lambda _: True
    names: Mapping[int, str] = MappingProxyType({})

    def default(self, node: BrokerSettings) -> OptionValue:
        """Return what the option says where nothing is set."""
        if self.unset is not None:
            return self.unset
        return self.from_setting(SETTINGS[self.setting].default_on(node))

    def encode(self, value: OptionValue) -> Typed:
        """Return a value as it stands on the wire."""
        if isinstance(value, str):
            return Typed.text(value)
        return Typed(self.kind, value.to_bytes(_SIZES[self.kind], "little"))


_SIZES: Final = {ValueKind.BOOL: 1, ValueKind.UINT32: 4, ValueKind.UINT64: 8}
_BITS: Final = {ValueKind.BOOL: 1, ValueKind.UINT32: 32, ValueKind.UINT64: 64}


def _size(text: str) -> int:
    if text.lower() in {"unlimited", "server_default"}:
        return FOREVER if text.lower() == "unlimited" else SERVER_DEFAULT
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].lower() not in _SIZE_UNITS:
        raise ValueError(text)
    # Not a float: it would lose the last digits of the largest number.
    whole, _, decimals = match[1].partition(".")
    unit: int = _SIZE_UNITS[match[2].lower()]
    digits: int = 10 ** len(decimals)
    return int(whole + decimals) * unit // digits


def _expiry(text: str) -> int:
    lowered = text.strip().lower()
    if lowered.isdecimal():
        return int(lowered)
    if lowered in {"never", "never_expire", "none", "unlimited", "server_default"}:
        return SERVER_DEFAULT if lowered == "server_default" else FOREVER
    spans = _SPAN.findall(lowered)
    if not spans or _SPAN.sub("", lowered).strip():
        raise ValueError(text)
    return sum(int(number) * _MICROSECONDS[unit] for number, unit in spans)


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(text)
        return text.lower()

    return parse


def _truth(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _milliseconds(expiry_us: OptionValue) -> int:
    # Rounded up: no message goes before its time.
    return NO_LIMIT if expiry_us == FOREVER else -(-int(expiry_us) // 1000)


def _microseconds(retention_ms: Value) -> int:
    amount = int(retention_ms)
    return FOREVER if amount == NO_LIMIT else min(amount * 1000, FOREVER)


def _flush(durability: OptionValue) -> str | None:
    # 'replicated' asks for no barrier on stable storage, and whatever the node does is enough.
    return Flush.ACKNOWLEDGED.value if durability == _PERSISTED else None


_U64: Final = ValueKind.UINT64
_TEXT: Final = ValueKind.STRING
_PERSISTED: Final = "persisted"
_REPLICATED: Final = "replicated"
_durability: Final = _one_of(_REPLICATED, _PERSISTED)

OPTIONS: Final[Mapping[str, TopicOption]] = {
    "compression_algorithm": TopicOption(
        "compression_label",
        _TEXT,
        "A label for consumers: none or gzip",
        _one_of(*_COMPRESSIONS),
        updatable=True,
        names={code: name for name, code in _COMPRESSIONS.items()},
    ),
    "message_expiry": TopicOption(
        "retention_ms",
        _U64,
        "Age in microseconds at which messages expire",
        _expiry,
        to_setting=_milliseconds,
        from_setting=_microseconds,
        updatable=True,
        zero_is_default=True,
    ),
    "max_topic_size": TopicOption(
        "retention_topic_bytes",
        _U64,
        "Bytes at which the oldest segments go",
        _size,
        to_setting=lambda size: NO_LIMIT if size == FOREVER else size,
        from_setting=lambda size: FOREVER if size == NO_LIMIT else int(size),
        updatable=True,
        zero_is_default=True,
    ),
    "segment_size": TopicOption(
        "segment_bytes",
        _U64,
        "Bytes at which a new segment begins",
        _size,
        zero_is_default=True,
        allowed=lambda size: _MIB <= size <= _GIB and size % _SECTOR == 0,
    ),
    "durability": TopicOption(
        "flush",
        _TEXT,
        "When a message is confirmed: replicated or persisted",
        _durability,
        to_setting=_flush,
        from_setting=lambda flush: _PERSISTED if flush == Flush.ACKNOWLEDGED else _REPLICATED,
        unset=_REPLICATED,
    ),
    "consumer_offset_durability": TopicOption(
        "consumer_offset_durability",
        _TEXT,
        "When an offset is confirmed: replicated or persisted",
        _durability,
    ),
    "messages_required_to_save": TopicOption(
        "save_after_messages",
        ValueKind.UINT32,
        "Messages that are gathered before they are written",
        int,
        allowed=lambda messages: 1 <= messages <= 16 * _MIB,
    ),
    "size_of_messages_required_to_save": TopicOption(
        "save_after_bytes",
        _U64,
        "Bytes that are gathered before they are written",
        _size,
        zero_is_default=True,
        allowed=lambda size: size <= _GIB,
    ),
    "preallocate_segments": TopicOption(
        "preallocate", ValueKind.BOOL, "Whether a segment's space is taken at once", _truth
    ),
}


def settings_of(
    options: Mapping[str, Typed], node: BrokerSettings, *, update: bool = False
) -> dict[str, str]:
    """Check what a client set and return the settings that it means; raises IggyError.

    An update may set less than a creation. Whether a setting is in effect is not asked here.
    """
    settings = {}
    for name, typed in options.items():
        option = OPTIONS.get(name)
        if option is None or (update and not option.updatable):
            raise IggyError(ErrorCode.UNSUPPORTED_OPTION_KEY, name)
        said = _canonical(name, option, typed)
        if option.zero_is_default and said == SERVER_DEFAULT:
            if not update:
                continue
            said = option.default(node)
        value = option.to_setting(said)
        if value is not None:
            settings[option.setting] = SETTINGS[option.setting].write(value)
    return settings


def check_size(settings: Mapping[str, str], node: BrokerSettings) -> None:
    """Raise IggyError where a whole topic is given less room than one of its segments."""
    size = int(settings.get("retention_topic_bytes", NO_LIMIT))
    default = SETTINGS["segment_bytes"].default_on(node)
    segment_bytes = int(settings.get("segment_bytes", default))
    if NO_LIMIT != size < segment_bytes:
        raise IggyError(
            ErrorCode.INVALID_TOPIC_SIZE,
            f"max_topic_size is {size}, and a segment has up to {segment_bytes}",
        )


def refuse_any(options: Mapping[str, Typed]) -> None:
    """Raise IggyError where a resource that has no options is given one."""
    for name in options:
        raise IggyError(ErrorCode.UNSUPPORTED_OPTION_KEY, name)


def explicit(config: TopicConfig) -> dict[str, Typed]:
    """Return the options that were set, by a client of whatever protocol."""
    return {
        name: option.encode(option_value(config, name))
        for name, option in OPTIONS.items()
        if option.setting in config.explicit
    }


def derived(config: TopicConfig) -> dict[str, Typed]:
    """Return the options that nobody has set, with their defaults."""
    return {
        name: option.encode(option_value(config, name))
        for name, option in OPTIONS.items()
        if option.setting not in config.explicit
    }


def option_value(config: TopicConfig, name: str) -> OptionValue:
    """Return the value that holds for a topic."""
    option = OPTIONS[name]
    if option.setting not in config.explicit:
        return option.default(config.node)
    return option.from_setting(config.value(option.setting))


def compression_code(config: TopicConfig) -> int:
    """Return the byte that stands for the compression label in a topic's description."""
    return _COMPRESSIONS[str(option_value(config, "compression_algorithm"))]


def _canonical(name: str, option: TopicOption, value: Typed) -> OptionValue:
    try:
        if value.kind is ValueKind.STRING:
            parsed = option.parse(value.as_text())
        elif value.kind is ValueKind.UINT8 and option.names:
            parsed = option.names[int.from_bytes(value.data, "little")]
        elif value.kind is option.kind and len(value.data) == _SIZES[option.kind]:
            parsed = int.from_bytes(value.data, "little")
        else:
            raise IggyError(ErrorCode.INVALID_OPTION_VALUE, f"{name} as {value.kind.name}")
        if isinstance(parsed, int) and not _fits(option, parsed):
            raise IggyError(ErrorCode.INVALID_OPTION_VALUE, f"{name} of {parsed}")
    except (ValueError, KeyError) as error:
        raise IggyError(ErrorCode.INVALID_OPTION_VALUE, f"{name}: {error}") from error
    return bool(parsed) if option.kind is ValueKind.BOOL else parsed


def _fits(option: TopicOption, number: int) -> bool:
    if number >> _BITS[option.kind]:
        return False
    return (option.zero_is_default and number == SERVER_DEFAULT) or option.allowed(number)
