"""How a consumer wants to share the keys of a topic with others, as its SUBSCRIBE says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.subscriptions.selectors.key_shared import AS_THEY_SPREAD, KeySharing
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.wire.pulsar_api_pb2 import STICKY, CommandSubscribe, ServerError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHARE_BYTES: Final = 12 * limits.KIB
_RANGE_BYTES: Final = 400
"""About what a consumer's points on the ring of keys take of memory, and a range that it
chooses."""


def key_bytes(request: CommandSubscribe) -> int:
    """Return about how much memory is taken by what says which keys are a consumer's."""
    shares = request.subType == CommandSubscribe.Key_Shared
    return _SHARE_BYTES * shares + _RANGE_BYTES * len(request.keySharedMeta.hashRanges)


def sharing_of(request: CommandSubscribe, kind: SubscriptionKind) -> KeySharing:
    """Return the policy, which the subscription has from its first consumer.

    `entryBucketDispatch` is for brokers that know buckets, and means nothing to Pulsar's 4.0
    either. Raises RefusedError for a mode that nobody knows.
    """
    if kind is not SubscriptionKind.KEY_SHARED or not request.HasField("keySharedMeta"):
        return AS_THEY_SPREAD
    meta = request.keySharedMeta
    if not meta.HasField("keySharedMode"):
        raise RefusedError(ServerError.NotAllowedError, "keys are spread, or chosen (STICKY)")
    return KeySharing(
        chosen=meta.keySharedMode == STICKY, in_order=not meta.allowOutOfOrderDelivery
    )


def ranges_of(request: CommandSubscribe, kind: SubscriptionKind) -> Sequence[tuple[int, int]]:
    """Return the ranges of hashes that the consumer chooses; only one that shares keys so can, or
    one that is alone and reads some keys. Raises RefusedError.
    """
    is_alone = kind is SubscriptionKind.EXCLUSIVE
    if not is_alone and not sharing_of(request, kind).chosen:
        return ()
    ranges = request.keySharedMeta.hashRanges
    if len(ranges) > limits.KEY_RANGES:
        raise RefusedError(
            ServerError.NotAllowedError,
            f"a consumer chooses {len(ranges)} ranges of keys and {limits.KEY_RANGES} are allowed",
        )
    return [(each.start, each.end) for each in ranges]
