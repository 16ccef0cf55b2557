"""From a pipeline's definition to how its rows are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pipeline.jobs.to_topic import ToTopic
from penstock.pipeline.jobs.writing import PastJava, Stepped

if TYPE_CHECKING:
    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.jobs.writing import Writing


def writing_of(config: PipelineConfig) -> Writing:
    """Return how this job writes: past Java where nothing is asked that needs it."""
    if config.target_topic is None and not config.needs_spark:
        return PastJava(config)
    return computing(config)


def computing(config: PipelineConfig) -> Stepped:
    """Return how this job writes rows that Spark computes."""
    return Stepped(config) if config.target_topic is None else ToTopic(config)
