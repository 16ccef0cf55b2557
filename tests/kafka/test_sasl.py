"""Goal: a client that wants to log in learns that it can't, and its connection is not dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_dialog import Dialog, kafka_broker
from penstock.kafka.wire import ErrorCode


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "", "no such"])
async def test_a_handshake_has_nothing_to_agree_on(
    tmp_path: Path, mechanism: str, version: int
) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        answer = await dialog.ask("SaslHandshake", version, mechanism=mechanism)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        assert (await dialog.ask("DescribeCluster")).error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_nobody_logs_in_without_a_handshake(tmp_path: Path, version: int) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        answer = await dialog.ask("SaslAuthenticate", version, auth_bytes=b"\0user\0secret")
        assert (answer.error_code, answer.auth_bytes) == (ErrorCode.ILLEGAL_SASL_STATE, b"")
        assert "SASL" in answer.error_message
        assert "secret" not in answer.error_message
        assert (await dialog.ask("DescribeCluster")).error_code == 0


async def test_both_are_offered(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        offered = (await Dialog(broker).ask("ApiVersions", 2)).api_keys
    ranges = {each.api_key: (each.min_version, each.max_version) for each in offered}
    assert (ranges[17], ranges[36]) == ((0, 1), (0, 2))
