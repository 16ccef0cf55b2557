"""UpdateFeatures: change which features are in effect (KIP-584).

Versions 0-2. Each level is the one that this version of the broker has, so an update to that level
changes nothing and any other is INVALID_UPDATE_VERSION; a feature that is named twice or not at all
is INVALID_REQUEST. One that is refused fails the request: from version 2 on it has one error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.errors import ACCEPTED, RequestError, refusal
from penstock.kafka.features import FEATURES
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

FIRST_VERSION_WITH_ONE_ERROR: Final = 2


@handles(api("UpdateFeatures"), 0, 2)
async def update_features(request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
    response = api("UpdateFeatures").response
    pace = Pace()
    times = await pace.counted(each.feature for each in request.feature_updates)
    results = await pace.each(
        request.feature_updates, lambda each: _update(each, times[each.feature])
    )
    failed = next((each for each in results if each.error_code), None)
    code, message = (failed.error_code, failed.error_message) if failed else ACCEPTED
    if call.version >= FIRST_VERSION_WITH_ONE_ERROR:
        results = []
    return response(error_code=code, error_message=message, results=results)


def _update(
    update: UpdateFeaturesRequest.FeatureUpdateKey, times: int
) -> UpdateFeaturesResponse.UpdatableFeatureResult:
    result = api("UpdateFeatures").response.UpdatableFeatureResult(
        feature=update.feature, error_message=None
    )
    try:
        check_asked_once(times)
        _check(update.feature, update.max_version_level)
    except Exception as error:
        result.error_code, result.error_message = refusal(error)
    return result


def _check(name: str, level: int) -> None:
    feature = FEATURES.get(name)
    if feature is None:
        raise RequestError(ErrorCode.INVALID_UPDATE_VERSION, f"there is no feature {name}")
    if level != feature.finalized:
        raise RequestError(
            ErrorCode.INVALID_UPDATE_VERSION, f"{name} has level {feature.finalized} and no other"
        )
