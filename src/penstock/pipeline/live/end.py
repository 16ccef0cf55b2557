"""Where the live end of a table begins: checked before a row is read, so that none is missing."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.pipeline.clusters.opening import open_cluster
from penstock.pipeline.jobs.config import DefinitionError
from penstock.pipeline.jobs.settings import source_options
from penstock.pipeline.live.errors import LiveTableError
from penstock.pipeline.source.dividing import SMALLEST_TASK
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.offsets import EARLIEST, from_json, to_json, topic_ids
from penstock.pipeline.source.options import OptionError, parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.values.options import DEAD_LETTER, ON_PARSE_ERROR, OnParseError

if TYPE_CHECKING:
    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.source.offsets import Offsets
    from penstock.pipeline.tables.interface import Snapshot


TASKS: Final = "tasks"
"""The option by which `LiveEndSource` is told how many tasks it has."""


@dataclass(frozen=True)
class LiveEnd:
    """The messages that a table does not hold yet."""

    options: dict[str, str]
    """Those of a batch read of them, up to the end that their topics had by then."""
    rows: int
    """How many there are at most."""
    tasks: int
    """How many tasks it is worth to have them read by, a partition never by two."""
    topics: tuple[str, ...]

    def without_end(self) -> dict[str, str]:
        """Return the options of `LiveEndSource`, which looks for the end each time it reads."""
        bounds = ("assign", "endingOffsets")
        options = {name: value for name, value in self.options.items() if name not in bounds}
        return options | {"subscribe": ",".join(self.topics), TASKS: str(self.tasks)}


def live_end(config: PipelineConfig, snapshot: Snapshot | None) -> LiveEnd:
    """Ask the broker where the table ends in its topics; of no table, where it would begin.

    Raises LiveTableError where the table is of other topics, or where messages are gone that it has
    yet to get.
    """
    try:
        options = parse(source_options(config), streaming=True)
        with open_cluster(options) as cluster:
            planner = Planner(options, cluster)
            ids = planner.topic_ids()
            known = planner.starting() if snapshot is None else _known(planner, snapshot, ids)
            newest = planner.following(known, planner.latest())
            ends = {each: newest[each] for each in planner.sources()}
            # It also has the broker keep these messages for a while.
            planner.tasks(known, ends)
            rows = planner.rows(known, ends)
    except (DefinitionError, OptionError, SourceError) as error:
        raise LiveTableError(
            f"what came since the newest batch of {config.table} can't be read: {error}"
        ) from error
    starts = {each: known.get(each, EARLIEST) for each in ends}
    span = {
        "assign": _assignment(ends),
        "startingOffsets": json.dumps(to_json(starts, ids)),
        "endingOffsets": json.dumps(to_json(ends, ids)),
    }
    tasks = max(1, min(len(ends), os.cpu_count() or 1, rows // SMALLEST_TASK))
    return LiveEnd(_batch_options(config) | span, rows, tasks, config.topics)


def _known(planner: Planner, snapshot: Snapshot, ids: dict[str, str]) -> Offsets:
    """Return where the table ends, of those partitions that it has seen."""
    positions = snapshot.positions
    return planner.of_same_topics(from_json(positions), topic_ids(positions), ids)


def _assignment(ends: Offsets) -> str:
    """Return the option `assign`: a partition that is added later would have no end."""
    named: dict[str, list[int]] = {}
    for topic, partition in ends:
        named.setdefault(topic, []).append(partition)
    return json.dumps(named)


def _batch_options(config: PipelineConfig) -> dict[str, str]:
    options = source_options(config)
    del options["subscribe"]
    if DEAD_LETTER in options:
        # To read is not to write: the job puts them there when it comes to them.
        del options[DEAD_LETTER]
        options[ON_PARSE_ERROR] = OnParseError.DROP.value
    return options
