"""How configurations were stored before settings had names of Penstock's own.

Kafka's names stood for themselves, Iggy's options began with `iggy.`, and each had values of its
own. A topic keeps such a row until its configuration is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.broker.retention.policy import NO_LIMIT
from penstock.broker.settings import Flush
from penstock.broker.topics.settings import SETTINGS

_IGGY_PREFIX: Final = "iggy."
_IGGY_NAMES: Final = {
    "compression_algorithm": "compression_label",
    "message_expiry": "retention_ms",
    "max_topic_size": "retention_topic_bytes",
    "segment_size": "segment_bytes",
    "durability": "flush",
    "consumer_offset_durability": "consumer_offset_durability",
    "messages_required_to_save": "save_after_messages",
    "size_of_messages_required_to_save": "save_after_bytes",
    "preallocate_segments": "preallocate",
}
_IGGY_FOREVER: Final = (1 << 64) - 1


def canonical(stored: Mapping[str, str]) -> dict[str, str]:
    """Return a stored configuration under the settings' names of today, which may be its own.

    What is under no name that was ever given is kept as it is.
    """
    settings: dict[str, str] = {}
    for name, text in stored.items():
        if name.startswith(_IGGY_PREFIX):
            settings |= _of_iggy(name.removeprefix(_IGGY_PREFIX), text)
        elif name == "penstock.flush":
            settings["flush"] = text
        else:
            known = name.replace(".", "_")
            settings[known if known in SETTINGS else name] = text
    return settings


def _of_iggy(option: str, text: str) -> dict[str, str]:
    name = _IGGY_NAMES.get(option)
    match option:
        case "durability":
            # The other value asks for less than any flush policy gives.
            return {"flush": Flush.ACKNOWLEDGED} if text == "persisted" else {}
        case "message_expiry" | "max_topic_size" if int(text) == _IGGY_FOREVER:
            text = str(NO_LIMIT)
        case "message_expiry":
            text = str(-(-int(text) // 1000))
        case "preallocate_segments":
            text = text.lower()
    return {_IGGY_PREFIX + option if name is None else name: text}
