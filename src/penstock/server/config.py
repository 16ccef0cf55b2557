"""What an operator can set: by flag, by environment variable or in `penstock.toml`.

One declaration gives all three names: the key `kafka_port` is the flag `--kafka-port` and the
variable `PENSTOCK_KAFKA_PORT`. A flag wins over the environment, that over the file, that over the
default. What can't be understood is refused, never skipped.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, NamedTuple

from penstock.broker.advertised import advertised_listeners

ENVIRONMENT_PREFIX: Final = "PENSTOCK_"
DEFAULT_FILE: Final = Path("penstock.toml")
_FILE_VARIABLE: Final = "PENSTOCK_CONFIG"
CLIENT_VARIABLES: Final = frozenset({"PENSTOCK_SERVER"})
"""What the commands that speak to a broker read; no setting of one."""

_OF_KUBERNETES: Final = re.compile(
    r"PENSTOCK(_[A-Z0-9_]+)?_"
    r"(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_ADDRESS_OF_KUBERNETES: Final = re.compile(r"(tcp|udp|sctp)://\S+:\d+")

NO_LIMIT: Final = -1

_UNITS: Final = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_MIB: Final = 1 << 20


class ConfigError(Exception):
    """A setting is refused. The message names where it stands and what would be right."""


class Setting(NamedTuple):
    """One thing that can be set; the help is complete sentences for people."""

    key: str
    default: object
    parse: Callable[[str], object]
    help: str
    secret: bool

    @property
    def flag(self) -> str:
        return "--" + self.key.replace("_", "-")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.key.upper()


def _about(parse: Callable[[str], object], text: str, *, secret: bool = False) -> dict[str, object]:
    return {"parse": parse, "help": text, "secret": secret}


def _port(text: str) -> int:
    return _number(text, 0, 65535, "a port number from 0 to 65535 (0 takes any free port)")


def _count(text: str) -> int:
    return _number(text, 1, 10_000, "a whole number from 1 to 10000")


def _count_or_default(text: str) -> int:
    return _number(text, 0, 10_000, "a whole number from 0 to 10000 (0 is the default)")


def _milliseconds(text: str) -> int:
    return _number(text, 0, 10_000, "a whole number of milliseconds from 0 to 10000")


def _long_time(text: str) -> int:
    return _number(text, 1, (1 << 31) - 1, "a whole number of milliseconds from 1 to 2147483647")


def _number(text: str, least: int, most: int, expected: str) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise ValueError(expected)
    return int(text)


def _memory(text: str) -> int:
    size = _bytes(text)
    if text != "0" and not 64 * _MIB <= size <= 1 << 50:
        raise ValueError("a size of 64MiB or more, such as 2GiB (0 is the default)")
    return size


def _bytes(text: str) -> int:
    """Return a size, 0 for what is none."""
    match = re.fullmatch(r"(\d{1,15})\s*([A-Za-z]*)", text)
    unit = _UNITS.get(match[2].upper()) if match else None
    return int(match[1]) * unit if match and unit else 0


def _size(text: str) -> int:
    size = _bytes(text)
    if not _MIB <= size <= 1 << 31:
        raise ValueError("a size from 1MiB to 2GiB, such as 256MiB")
    return min(size, (1 << 31) - 1)


def _message_size(text: str) -> int:
    size = _bytes(text)
    if not 1 << 10 <= size <= 64 * _MIB:
        raise ValueError("a size from 1KiB to 64MiB, such as 10MiB")
    return size


def _limit(text: str) -> int:
    expected = "a whole number from 0, or -1 for no limit"
    return NO_LIMIT if text == "-1" else _number(text, 0, (1 << 63) - 1, expected)


def _size_limit(text: str) -> int:
    size = _bytes(text)
    if text not in {"-1", "0"} and not size:
        raise ValueError("a size such as 10GiB, or -1 for no limit")
    return NO_LIMIT if text == "-1" else size


def _rate(text: str) -> int:
    rate = _bytes(text)
    if rate < _MIB:
        raise ValueError("a size from 1MiB on, such as 50MiB")
    return rate


def _segment_age(text: str) -> int:
    return _number(text, 1, (1 << 63) - 1, "a whole number of milliseconds from 1")


def _delay(text: str) -> int:
    return _number(text, 0, (1 << 63) - 1, "a whole number of milliseconds from 0")


def _check_interval(text: str) -> int:
    return _number(text, 100, 86_400_000, "a whole number of milliseconds from 100 to a day")


def _switch(text: str) -> bool:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError("true or false")
    return words[text.lower()]


def _listeners(text: str) -> str:
    advertised_listeners(text)
    return text


def _text(text: str) -> str:
    if not text:
        raise ValueError("a text that is not empty")
    return text


def _folder(text: str) -> Path:
    return Path(_text(text))  # An empty one would be the working directory.


def _choice(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return text.lower()

    return parse


@dataclass(frozen=True)
class Config:
    """The settings of one broker."""

    data_folder: Path = field(
        default=Path("penstock-data"),
        metadata=_about(_folder, "Folder of all data; made when missing."),
    )
    host: str = field(
        default="127.0.0.1",
        metadata=_about(_text, "Address to listen on; 0.0.0.0 is every IPv4 address."),
    )
    kafka_port: int = field(default=9092, metadata=_about(_port, "Port of the Kafka protocol."))
    pulsar_port: int = field(default=6650, metadata=_about(_port, "Port of the Pulsar protocol."))
    iggy_port: int = field(default=8090, metadata=_about(_port, "Port of the Iggy protocol (TCP)."))
    advertised_host: str = field(
        default="",
        metadata=_about(
            str, "Host that clients are told to connect to; empty is the one they connected to."
        ),
    )
    address_connections: int = field(
        default=0,
        metadata=_about(
            _count_or_default,
            "Connections that clients of one address may have; 0 is half of all that there may be.",
        ),
    )
    memory_bytes: int = field(
        default=0,
        metadata=_about(
            _memory,
            "Memory for what clients make the broker hold; 0 is a quarter of the machine, "
            "256MiB or more.",
        ),
    )
    flush: str = field(
        default="acknowledged",
        metadata=_about(
            _choice("acknowledged", "written"),
            "When a message is acknowledged: 'acknowledged' once it is on stable storage, "
            "'written' once the operating system has it.",
        ),
    )
    flush_interval_ms: int = field(
        default=10,
        metadata=_about(
            _milliseconds,
            "What is acknowledged before it is flushed, as Kafka's acks=1 asks for, is flushed "
            "after so many milliseconds at most under load, and at once on a quiet topic or where "
            "a reader waits at the end; readers see it then.",
        ),
    )
    segment_bytes: int = field(
        default=1 << 30, metadata=_about(_size, "Size at which a log segment is closed.")
    )
    segment_ms: int = field(
        default=(1 << 63) - 1,
        metadata=_about(_segment_age, "Age in milliseconds at which a log segment is closed."),
    )
    segment_jitter_ms: int = field(
        default=0,
        metadata=_about(
            _delay, "Milliseconds by up to which a log segment is closed earlier, at random."
        ),
    )
    retention_ms: int = field(
        default=NO_LIMIT,
        metadata=_about(_limit, "Age in milliseconds at which messages are deleted; -1 is never."),
    )
    retention_bytes: int = field(
        default=NO_LIMIT,
        metadata=_about(
            _size_limit, "Size of a partition at which its oldest messages go; -1 is none."
        ),
    )
    retention_topic_bytes: int = field(
        default=NO_LIMIT,
        metadata=_about(
            _size_limit, "Size of a whole topic at which its oldest messages go; -1 is none."
        ),
    )
    retention_check_ms: int = field(
        default=60_000,
        metadata=_about(
            _check_interval, "Milliseconds between two looks at what is due to be deleted."
        ),
    )
    compaction_check_ms: int = field(
        default=15_000,
        metadata=_about(
            _check_interval, "Milliseconds between two looks at what is due to be compacted."
        ),
    )
    compaction_bytes_per_second: int = field(
        default=50 << 20,
        metadata=_about(_rate, "Bytes of logs that compaction reads a second at most."),
    )
    file_delete_delay_ms: int = field(
        default=0,
        metadata=_about(
            _delay, "Milliseconds for which the files of deleted messages stay on the disk."
        ),
    )
    message_ttl_ms: int = field(
        default=NO_LIMIT,
        metadata=_about(
            _limit,
            "Age in milliseconds at which a message counts as acknowledged in every subscription; "
            "-1 is never.",
        ),
    )
    backlog_quota_bytes: int = field(
        default=NO_LIMIT,
        metadata=_about(
            _size_limit,
            "Bytes of a partition that a subscription may have left to acknowledge; -1 is all.",
        ),
    )
    backlog_quota_ms: int = field(
        default=NO_LIMIT,
        metadata=_about(
            _limit,
            "Age in milliseconds of the first message that a subscription has not acknowledged; -1 "
            "is any.",
        ),
    )
    backlog_quota_policy: str = field(
        default="producer_request_hold",
        metadata=_about(
            _choice("producer_request_hold", "producer_exception", "consumer_backlog_eviction"),
            "What happens beyond a backlog quota: Pulsar producers wait or are refused, or the "
            "messages count as acknowledged.",
        ),
    )
    pulsar_message_bytes: int = field(
        default=5 * _MIB,
        metadata=_about(
            _message_size,
            "The largest message that a Pulsar client may send in one piece; clients hear of it "
            "when they connect, and those that may send larger ones in chunks of it.",
        ),
    )
    pulsar_advertised_listeners: str = field(
        default="",
        metadata=_about(
            _listeners,
            "Addresses for Pulsar clients that ask for a listener by its name, as "
            "outside:pulsar://broker.example.com:6650; several have commas between.",
        ),
    )
    auto_create_topics: bool = field(
        default=True, metadata=_about(_switch, "Create a topic when a client first names it.")
    )
    default_partitions: int = field(
        default=1,
        metadata=_about(_count, "Partitions of a topic that is created without saying how many."),
    )
    transaction_max_timeout_ms: int = field(
        default=900_000,
        metadata=_about(
            _long_time,
            "The longest that a producer may ask for a transaction to be open; what is open for "
            "longer than was asked for is aborted.",
        ),
    )
    transactional_id_expiration_ms: int = field(
        default=604_800_000,
        metadata=_about(
            _long_time,
            "A transactional id is forgotten when it was not used for so long; its producer begins "
            "anew.",
        ),
    )
    iggy_user: str = field(default="iggy", metadata=_about(_text, "Name of the Iggy user."))
    iggy_password: str = field(
        default="iggy", metadata=_about(_text, "Password of the Iggy user.", secret=True)
    )
    iggy_anonymous: str = field(
        default="loopback",
        metadata=_about(
            _choice("loopback", "always", "never"),
            "Who may use Iggy's protocol of 2023, which knows no login: clients on this machine,"
            " everybody or nobody.",
        ),
    )
    log_level: str = field(
        default="info",
        metadata=_about(
            _choice("debug", "info", "warning", "error"), "Least level of the log lines."
        ),
    )


SETTINGS: Final = tuple(
    Setting(
        item.name,
        item.default,
        item.metadata["parse"],
        item.metadata["help"],
        item.metadata["secret"],
    )
    for item in fields(Config)
)
_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_BY_VARIABLE: Final = {setting.variable: setting for setting in SETTINGS}


def load_config(
    flags: Mapping[str, str], environment: Mapping[str, str], file: Path | None = None
) -> Config:
    """Bring the sources together; `flags` is keyed as the file is. Raises ConfigError.

    Without `file` the variable PENSTOCK_CONFIG names it, and without that `penstock.toml` in the
    working directory is read when there is one.
    """
    values: dict[str, object] = {}
    values.update(_from_file(_file_to_read(file, environment)))
    values.update(_from_environment(environment))
    for key, text in flags.items():
        setting = _BY_KEY[key]
        values[key] = _parsed(setting, text, setting.flag)
    config = Config(**values)  # type: ignore[arg-type]  # each value came from its key's own parser
    _refuse_shared_port(config)
    return config


def _file_to_read(file: Path | None, environment: Mapping[str, str]) -> Path | None:
    if file is not None:
        return file
    if _FILE_VARIABLE in environment:
        return Path(environment[_FILE_VARIABLE])
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def _from_file(path: Path | None) -> dict[str, object]:
    if path is None:
        return {}
    import tomllib  # noqa: PLC0415 - most starts read no file

    try:
        text = path.read_text(encoding="utf-8")
        entries = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: no valid TOML: {error}") from error
    return {key: _file_value(key, value, _place(path, text, key)) for key, value in entries.items()}


def _file_value(key: str, value: object, place: str) -> object:
    setting = _BY_KEY.get(key)
    if setting is None:
        raise ConfigError(f'{place}: unknown key "{key}"{_suggestion(key, _BY_KEY)}')
    if not isinstance(value, str | int):
        raise ConfigError(f"{place}: {key} takes one value, not a {type(value).__name__}")
    return _parsed(setting, str(value), f"{place}: {key}")


def _place(path: Path, text: str, key: str) -> str:
    pattern = re.compile(rf"""\s*\[?["']?{re.escape(key)}["']?\s*[=.\]]""")
    for number, line in enumerate(text.splitlines(), start=1):
        if pattern.match(line):
            return f"{path}:{number}"
    return str(path)


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable == _FILE_VARIABLE:
            continue
        if variable in CLIENT_VARIABLES or _is_of_kubernetes(variable, text):
            continue
        setting = _BY_VARIABLE.get(variable)
        if setting is not None:
            values[setting.key] = _parsed(setting, text, variable)
        else:
            hint = _suggestion(variable, _BY_VARIABLE)
            raise ConfigError(f"environment: unknown variable {variable}{hint}")
    return values


def _is_of_kubernetes(variable: str, text: str) -> bool:
    """Whether it is what Kubernetes sets in every pod for a service named `penstock...`.

    PENSTOCK_KAFKA_PORT is such a variable where a service is named `penstock-kafka`, and a setting
    of ours; its value tells which.
    """
    if variable.endswith("_PORT") and _ADDRESS_OF_KUBERNETES.fullmatch(text):
        return True
    return variable not in _BY_VARIABLE and _OF_KUBERNETES.fullmatch(variable) is not None


def _refuse_shared_port(config: Config) -> None:
    taken: dict[int, Setting] = {}
    for setting in SETTINGS:
        port = getattr(config, setting.key)
        if setting.parse is not _port or port == 0:
            continue
        other = taken.setdefault(port, setting)
        if other is not setting:
            raise ConfigError(
                f"{other.key} and {setting.key} are both {port}, and each protocol needs a port of "
                f"its own: choose another one with {other.flag} or {setting.flag}"
            )


def _parsed(setting: Setting, text: str, place: str) -> object:
    try:
        return setting.parse(text)
    except ValueError as error:
        shown = "this value" if setting.secret else f'"{text}"'
        raise ConfigError(f"{place}: {shown} is refused; what is needed is {error}") from error


def _suggestion(name: str, known: Mapping[str, Setting]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f'; did you mean "{near[0]}"?'
    return "; known are " + ", ".join(sorted(known))
