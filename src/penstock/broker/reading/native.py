"""Reading batches as they are stored, for readers of their own encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.reading.conversion_cache import Taken

if TYPE_CHECKING:
    from penstock.broker.reading.conversion_cache import ConversionCache
    from penstock.log import Log
    from penstock.records import Encoding


class BatchReader:
    """Reads one log for readers of all encodings.

    A reader that meets nothing but its own encoding gets what is stored, and nothing else is done.
    The conversions come in with the first foreign batch that a reader of this encoding meets. From
    then on they are asked first, so that what they keep is not read from the log again.
    """

    def __init__(self, log: Log, conversions: ConversionCache) -> None:
        self._log = log
        self._conversions = conversions
        self._converted_to: set[Encoding] = set()

    async def read(self, offset: int, max_bytes: int, magic: Encoding, end: int) -> Taken:
        """Return whole batches in the encoding of `magic`, all below `end`, as Partition.read does.

        Raises what Partition.read raises.
        """
        latest = self.latest(offset, max_bytes, magic, end)
        if latest is not None:
            return latest
        if magic not in self._converted_to:
            batches = await self._log.read(offset, max_bytes, end)
            if batches.magic == magic or not batches.data:
                return Taken.of(batches)
            self._converted_to.add(magic)
        return await self._conversions.read(self._log, offset, max_bytes, magic, end)

    def latest(self, offset: int, max_bytes: int, magic: Encoding, end: int) -> Taken | None:
        """Return what `read` would, if all of that was appended a moment ago; see LatestBatches."""
        found = self._conversions.latest.read(self._log, offset, max_bytes, magic, end)
        if found is None:
            return None
        data, next_offset = found
        self._log.passed(next_offset)
        return Taken([data], len(data), next_offset)
