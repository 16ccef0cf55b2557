"""The options of a topic: what a client may set, in which form, and how it is kept.

They are kept in the topic's configuration as text, under `iggy.` and the option's name. What the
broker does with them is in docs/iggy.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.options import Typed, ValueKind

FOREVER: Final = (1 << 64) - 1
"""As an expiry: never. As a size: unlimited."""
SERVER_DEFAULT: Final = 0
"""As an expiry and as a topic's size: what the server thinks best."""
CONFIG_PREFIX: Final = "iggy."

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


class TopicOption(NamedTuple):
    """One option. `parse` brings what a client wrote as text into the option's own kind."""

    kind: ValueKind
    default: int | str | bool
    description: str
    parse: Callable[[str], int | str | bool]
    updatable: bool = False
    zero_is_default: bool = False
    allowed: Callable[[int], bool] = lambda _: True

    def encode(self, value: int | str | bool) -> Typed:
        """Return a value as it stands on the wire."""
        if isinstance(value, str):
            return Typed.text(value)
        return Typed(self.kind, value.to_bytes(_SIZES[self.kind], "little"))


_SIZES: Final = {ValueKind.BOOL: 1, ValueKind.UINT32: 4, ValueKind.UINT64: 8}


def _size(text: str) -> int:
    if text.lower() in {"unlimited", "server_default"}:
        return FOREVER if text.lower() == "unlimited" else SERVER_DEFAULT
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].lower() not in _SIZE_UNITS:
        raise ValueError(text)
    # Not a float: it would lose the last digits of the largest number.
    return int(Fraction(match[1]) * _SIZE_UNITS[match[2].lower()])


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


_U64: Final = ValueKind.UINT64
_TEXT: Final = ValueKind.STRING
_durability: Final = _one_of("replicated", "persisted")

CATALOGUE: Final[Mapping[str, TopicOption]] = {
    "compression_algorithm": TopicOption(
        _TEXT,
        "none",
        "A label for consumers: none or gzip",
        _one_of(*_COMPRESSIONS),
        updatable=True,
    ),
    "message_expiry": TopicOption(
        _U64,
        FOREVER,
        "Age in microseconds at which messages expire",
        _expiry,
        updatable=True,
        zero_is_default=True,
    ),
    "max_topic_size": TopicOption(
        _U64,
        FOREVER,
        "Bytes at which the oldest segments go",
        _size,
        updatable=True,
        zero_is_default=True,
    ),
    "segment_size": TopicOption(
        _U64,
        _GIB,
        "Bytes at which a new segment begins",
        _size,
        allowed=lambda size: _MIB <= size <= _GIB and size % _SECTOR == 0,
    ),
    "durability": TopicOption(
        _TEXT, "replicated", "When a message is confirmed: replicated or persisted", _durability
    ),
    "consumer_offset_durability": TopicOption(
        _TEXT, "replicated", "When an offset is confirmed: replicated or persisted", _durability
    ),
    "messages_required_to_save": TopicOption(
        ValueKind.UINT32, 1024, "Messages that are gathered before they are written", int
    ),
    "size_of_messages_required_to_save": TopicOption(
        _U64, _MIB, "Bytes that are gathered before they are written", _size
    ),
    "preallocate_segments": TopicOption(
        ValueKind.BOOL, False, "Whether a segment's space is taken at once", _truth
    ),
}


def configuration(options: Mapping[str, Typed], *, update: bool = False) -> dict[str, str]:
    """Check what a client set and return it as configuration; raises IggyError.

    An update may set less than a creation.
    """
    settings = {}
    for name, value in options.items():
        option = CATALOGUE.get(name)
        if option is None or (update and not option.updatable):
            raise IggyError(ErrorCode.UNSUPPORTED_OPTION_KEY, name)
        settings[CONFIG_PREFIX + name] = str(_canonical(name, option, value))
    return settings


def check_sizes(config: Mapping[str, str]) -> None:
    """Raise IggyError where a topic could not hold one of its own segments."""
    limit = int(setting(config, "max_topic_size"))
    if limit < int(setting(config, "segment_size")):
        raise IggyError(ErrorCode.INVALID_TOPIC_SIZE, str(limit))


def refuse_any(options: Mapping[str, Typed]) -> None:
    """Raise IggyError where a resource that has no options is given one."""
    for name in options:
        raise IggyError(ErrorCode.UNSUPPORTED_OPTION_KEY, name)


def explicit(config: Mapping[str, str]) -> dict[str, Typed]:
    """Return the options that a client has set."""
    return {
        name: option.encode(setting(config, name))
        for name, option in CATALOGUE.items()
        if CONFIG_PREFIX + name in config
    }


def derived(config: Mapping[str, str]) -> dict[str, Typed]:
    """Return the options that nobody has set, with their defaults."""
    return {
        name: option.encode(option.default)
        for name, option in CATALOGUE.items()
        if CONFIG_PREFIX + name not in config
    }


def setting(config: Mapping[str, str], name: str) -> int | str | bool:
    """Return the value that holds for a topic."""
    option = CATALOGUE[name]
    text = config.get(CONFIG_PREFIX + name)
    return option.default if text is None else option.parse(text.lower())


def compression_code(config: Mapping[str, str]) -> int:
    """Return the byte that stands for the compression label in a topic's description."""
    return _COMPRESSIONS[str(setting(config, "compression_algorithm"))]


def _canonical(name: str, option: TopicOption, value: Typed) -> int | str | bool:
    try:
        if value.kind is ValueKind.STRING:
            parsed = option.parse(value.as_text())
        elif value.kind is ValueKind.BOOL and option.kind is ValueKind.BOOL:
            parsed = value.data != b"\0"
        elif option.kind in {ValueKind.UINT32, ValueKind.UINT64}:
            parsed = value.as_number()
        else:
            raise IggyError(ErrorCode.INVALID_OPTION_VALUE, f"{name} as {value.kind.name}")
        if isinstance(parsed, int) and not _fits(option, parsed):
            raise IggyError(ErrorCode.INVALID_OPTION_VALUE, f"{name} of {parsed}")
    except (ValueError, KeyError) as error:
        raise IggyError(ErrorCode.INVALID_OPTION_VALUE, f"{name}: {error}") from error
    return option.default if parsed == SERVER_DEFAULT and option.zero_is_default else parsed


def _fits(option: TopicOption, number: int) -> bool:
    return number >> (8 * _SIZES[option.kind]) == 0 and option.allowed(number)
