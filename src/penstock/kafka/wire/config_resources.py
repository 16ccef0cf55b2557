"""What configuration requests call the things that have a configuration."""

from __future__ import annotations

from enum import IntEnum


class ConfigResource(IntEnum):
    """The numbers of DescribeConfigs, AlterConfigs and ListConfigResources."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
