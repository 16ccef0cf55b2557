"""Goal: who asks for rules of access, or for what users log in by, learns that there is none, as
from an Apache Kafka without an authorizer.
"""

from __future__ import annotations

import pytest

from kafka_dialog import Dialog
from penstock.kafka.wire import ErrorCode, Struct, api

ANY, ALLOW, READ, OF_TOPIC = 1, 3, 3, 2


@pytest.mark.parametrize("version", range(4))
async def test_access_lists_are_disabled(dialog: Dialog, version: int) -> None:
    everything = {
        "resource_name_filter": None,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    described = await dialog.ask("DescribeAcls", version, resource_type_filter=ANY, **everything)
    rule = api("CreateAcls").request.AclCreation(
        resource_type=OF_TOPIC,
        resource_name="orders",
        principal="User:a",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    created = await dialog.ask("CreateAcls", version, creations=[rule, rule])
    asked = api("DeleteAcls").request.DeleteAclsFilter(resource_type_filter=OF_TOPIC, **everything)
    deleted = await dialog.ask("DeleteAcls", version, filters=[asked])
    answers: list[Struct] = [described, *created.results, *deleted.filter_results]
    assert [each.error_code for each in answers] == [ErrorCode.SECURITY_DISABLED] * 4
    assert all("nobody is refused" in each.error_message for each in answers)


async def test_nobody_has_scram_credentials(dialog: Dialog) -> None:
    everybody = await dialog.ask("DescribeUserScramCredentials", users=None)
    assert (everybody.error_code, everybody.results) == (0, [])
    user = api("DescribeUserScramCredentials").request.UserName
    named = await dialog.ask(
        "DescribeUserScramCredentials", users=[user(name=each) for each in ("a", "b", "b")]
    )
    assert [(each.user, each.error_code) for each in named.results] == [
        ("a", ErrorCode.RESOURCE_NOT_FOUND),
        ("b", ErrorCode.DUPLICATE_RESOURCE),
    ]
