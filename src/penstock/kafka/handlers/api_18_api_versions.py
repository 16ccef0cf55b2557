"""ApiVersions: what is served, read from what is registered.

Versions 0-4. A newer version is answered in the form of version 0 with UNSUPPORTED_VERSION and the
range of ApiVersions itself, and the client asks again (KIP-511). From version 3 on a client names
its software; a name that breaks the rules is INVALID_REQUEST.

Features are those of `penstock.kafka.features`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from penstock.kafka import features
from penstock.kafka.features import FEATURES
from penstock.kafka.handlers.registry import HANDLERS, Handler, handles
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ApiVersionsRequest, ApiVersionsResponse

API_VERSIONS: Final = 18
FIRST_VERSION_WITH_SOFTWARE: Final = 3
FIRST_VERSION_WITH_LEVEL_0: Final = 4

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


@handles(api("ApiVersions"), 0, 4)
def api_versions(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if call.version >= FIRST_VERSION_WITH_SOFTWARE and not all(
        map(_SOFTWARE.fullmatch, (request.client_software_name, request.client_software_version))
    ):
        return api("ApiVersions").response(error_code=ErrorCode.INVALID_REQUEST)
    return _served(call.version >= FIRST_VERSION_WITH_LEVEL_0)


def unsupported_version(_request: ApiVersionsRequest, _call: Call) -> ApiVersionsResponse:
    """The answer, in version 0, to a version of this request that is not known."""
    own = _range(HANDLERS[API_VERSIONS])
    return api("ApiVersions").response(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])


@cache
def _served(takes_level_0: bool) -> ApiVersionsResponse:
    # Made once: every connection of every client begins with this request.
    response = api("ApiVersions").response
    return response(
        api_keys=[_range(HANDLERS[key]) for key in sorted(HANDLERS)],
        supported_features=[
            response.SupportedFeatureKey(
                name=each.name, min_version=each.first, max_version=each.last
            )
            for each in FEATURES.values()
            # Clients of older versions take no range that begins with 0.
            if each.first > 0 or takes_level_0
        ],
        finalized_features_epoch=features.EPOCH,
        finalized_features=[
            response.FinalizedFeatureKey(
                name=each.name,
                max_version_level=each.finalized,
                min_version_level=each.finalized,
            )
            for each in FEATURES.values()
        ],
    )


def _range(handler: Handler) -> ApiVersionsResponse.ApiVersion:
    return api("ApiVersions").response.ApiVersion(
        api_key=handler.api.key,
        min_version=handler.versions.first,
        max_version=handler.versions.last,
    )
