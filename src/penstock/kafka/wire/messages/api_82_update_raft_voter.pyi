# Written by `make stubs` from 82_update_raft_voter.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class UpdateRaftVoterRequest(Struct):
    cluster_id: str | None = ""
    current_leader_epoch: int = 0
    voter_id: int = 0
    voter_directory_id: UUID = ...
    listeners: list[UpdateRaftVoterRequest.Listener] = ...
    kraft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = ...

    class Listener(Struct):
        name: str = ""
        host: str = ""
        port: int = 0

    class KRaftVersionFeature(Struct):
        min_supported_version: int = 0
        max_supported_version: int = 0

class UpdateRaftVoterRequestType(MessageType[UpdateRaftVoterRequest]):
    __call__: type[UpdateRaftVoterRequest]
    Listener = UpdateRaftVoterRequest.Listener
    KRaftVersionFeature = UpdateRaftVoterRequest.KRaftVersionFeature

class UpdateRaftVoterResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    current_leader: UpdateRaftVoterResponse.CurrentLeader = ...

    class CurrentLeader(Struct):
        leader_id: int = -1
        leader_epoch: int = -1
        host: str = ""
        port: int = 0

class UpdateRaftVoterResponseType(MessageType[UpdateRaftVoterResponse]):
    __call__: type[UpdateRaftVoterResponse]
    CurrentLeader = UpdateRaftVoterResponse.CurrentLeader

class UpdateRaftVoterApi(Api[UpdateRaftVoterRequest, UpdateRaftVoterResponse]):
    request: UpdateRaftVoterRequestType
    response: UpdateRaftVoterResponseType
