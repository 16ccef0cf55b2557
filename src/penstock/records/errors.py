"""What goes wrong with a batch's body."""

from __future__ import annotations


class MalformedBatchError(ValueError):
    """A body that its own protocol can't read either, or that inflates over the limit.

    `base_offset` is the batch's first offset and `next_offset` the one after its last, so that a
    reader can tell its client what is missing and go on behind it. Both are -1 for a body that
    came without a header.
    """

    def __init__(self, reason: str, base_offset: int = -1, next_offset: int = -1) -> None:
        where = f"batch at offset {base_offset}: " if base_offset >= 0 else ""
        super().__init__(where + reason)
        self.base_offset = base_offset
        self.next_offset = next_offset


class OverLimitError(MalformedBatchError):
    """The batches hold or inflate to more than may be in memory at once."""
