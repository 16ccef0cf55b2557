"""Login and what a client asks about the server, by the real client."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest
from apache_iggy import IggyClient

from broker_process import BrokerProcess
from iggy_clients import connected


async def test_server_describes_itself(shared_server: BrokerProcess, client: IggyClient) -> None:
    await client.ping()
    stats = await client.get_stats()
    assert stats.process_id == shared_server.pid
    assert stats.iggy_server_version == "0.9.0"
    assert stats.clients_count >= 1
    assert stats.threads_count > 0
    assert 0 < stats.available_memory <= stats.total_memory
    assert 0 < stats.free_disk_space <= stats.total_disk_space
    assert stats.cache_metrics == {}
    later = await client.get_stats()
    assert later.run_time >= stats.run_time
    assert later.start_time == stats.start_time


async def test_wrong_password_is_refused_and_the_right_one_still_works(
    shared_server: BrokerProcess,
) -> None:
    client = IggyClient(shared_server.iggy)
    await client.connect()
    for user, password in (("iggy", "guessed"), ("somebody", "iggy")):
        with pytest.raises(RuntimeError, match=r"(?i)invalid credentials"):
            await client.login_user(user, password)
    with pytest.raises(RuntimeError, match=r"(?i)unauthenticated"):
        await client.get_streams()
    await client.login_user("iggy", "iggy")
    assert isinstance(await client.get_streams(), list)


async def test_nothing_but_ping_without_login_and_after_logout(
    shared_server: BrokerProcess,
) -> None:
    client = IggyClient(shared_server.iggy)
    await client.connect()
    await client.ping()
    with pytest.raises(RuntimeError, match=r"(?i)unauthenticated"):
        await client.get_stats()
    await client.login_user("iggy", "iggy")
    await client.get_stats()
    await client.logout_user()
    with pytest.raises(RuntimeError, match=r"(?i)unauthenticated"):
        await client.get_stats()
    await client.login_user("iggy", "iggy")
    await client.get_stats()


async def test_connection_string_logs_in_by_itself(shared_server: BrokerProcess) -> None:
    client = IggyClient.from_connection_string(f"iggy+tcp://iggy:iggy@{shared_server.iggy}")
    await client.connect()
    assert (await client.get_stats()).process_id == shared_server.pid


async def test_root_is_the_one_user(client: IggyClient) -> None:
    (listed,) = await client.get_users()
    for key in ("iggy", 0):
        user = await client.get_user(key)
        assert user is not None
        assert (user.id, user.username) == (listed.id, listed.username) == (0, "iggy")
    assert await client.get_user("somebody") is None
    with pytest.raises(RuntimeError, match=r"(?i)feature is unavailable"):
        await client.create_user("somebody", "secret")


async def test_user_and_password_are_settings(
    start_server: Callable[..., BrokerProcess],
) -> None:
    server = start_server("--iggy-user", "root", "--iggy-password", "secret")
    with pytest.raises(RuntimeError, match=r"(?i)invalid credentials"):
        await connected(server.iggy)
    assert [
        user.username for user in await (await connected(server.iggy, "root", "secret")).get_users()
    ] == ["root"]


@pytest.mark.parametrize("code", [38, 39, 40, 44, 45, 60_000])
async def test_code_that_is_no_command_is_refused(client: IggyClient, code: int) -> None:
    with pytest.raises(RuntimeError, match=r"(?i)invalid command"):
        await client.send_binary_request(code, b"")
    await client.ping()


async def test_snapshot_is_an_archive(client: IggyClient) -> None:
    archive = await client.send_binary_request(11, bytes([2, 1, 100]))
    assert zipfile.ZipFile(io.BytesIO(archive)).testzip() is None


@pytest.mark.parametrize("code", [103, 104, 123])
async def test_what_is_not_built_says_so(client: IggyClient, code: int) -> None:
    with pytest.raises(RuntimeError, match=r"(?i)feature is unavailable"):
        await client.send_binary_request(code, b"")
    await client.ping()


async def test_connections_are_listed(shared_server: BrokerProcess, client: IggyClient) -> None:
    # The Python client has no call for these, so the replies' own layout is read.
    me = await client.send_binary_request(20, b"")
    client_id = me[:4]
    assert me[4:9] == bytes.fromhex("0000000001")
    assert await client.send_binary_request(21, client_id) == me
    assert await client.send_binary_request(21, b"\xff" * 4) == b""
    assert client_id in await client.send_binary_request(22, b"")
    metadata = await client.send_binary_request(12, b"")
    assert b"127.0.0.1" in metadata
    assert int(shared_server.iggy.rpartition(":")[2]).to_bytes(2, "little") in metadata
