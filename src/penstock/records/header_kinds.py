"""The kinds of a header as Iggy numbers them: the name's in the high half byte, the value's in the
low.
"""

from __future__ import annotations

from typing import Final

RAW: Final = 1
STRING: Final = 2

UNKNOWN: Final = 0
"""Of a header that was packed into another one: its kinds were not packed with it."""
OF_BYTES: Final = STRING << 4 | RAW
OF_TEXT: Final = STRING << 4 | STRING
