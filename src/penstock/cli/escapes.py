r"""Separators and templates as people type them: `\t` for a tab, `\x00` for a byte."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([0nrt\\]))")
_NAMED: Final = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"\\": b"\\"}


def unescaped(text: str) -> bytes:
    """Return the bytes that are meant; a backslash before anything else stands for itself."""
    typed = text.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(lambda found: _NAMED[found[2]] if found[2] else _byte(found[1]), typed)


def _byte(digits: bytes) -> bytes:
    return bytes([int(digits, 16)])
