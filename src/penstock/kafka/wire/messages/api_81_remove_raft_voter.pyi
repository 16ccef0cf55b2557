# Written by `make stubs` from 81_remove_raft_voter.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class RemoveRaftVoterRequest(Struct):
    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: UUID = ...

class RemoveRaftVoterRequestType(MessageType[RemoveRaftVoterRequest]):
    __call__: type[RemoveRaftVoterRequest]

class RemoveRaftVoterResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

class RemoveRaftVoterResponseType(MessageType[RemoveRaftVoterResponse]):
    __call__: type[RemoveRaftVoterResponse]

class RemoveRaftVoterApi(Api[RemoveRaftVoterRequest, RemoveRaftVoterResponse]):
    request: RemoveRaftVoterRequestType
    response: RemoveRaftVoterResponseType
