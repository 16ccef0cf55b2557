"""DescribeAcls: which rules of access there are (KIP-140).

Versions 0-3. SECURITY_DISABLED, as of a Kafka without an authorizer: there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.access_lists import SECURITY_DISABLED
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeAclsRequest, DescribeAclsResponse


@handles(api("DescribeAcls"), 0, 3)
def describe_acls(_request: DescribeAclsRequest, _call: Call) -> DescribeAclsResponse:
    code, message = SECURITY_DISABLED
    return api("DescribeAcls").response(error_code=code, error_message=message)
