# Written by `make stubs` from 80_add_raft_voter.schema.

from uuid import UUID

from penstock.kafka.wire.apis import Api, MessageType
from penstock.kafka.wire.structs import Struct

class AddRaftVoterRequest(Struct):
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: UUID = ...
    listeners: list[AddRaftVoterRequest.Listener] = ...
    ack_when_committed: bool = True

    class Listener(Struct):
        name: str = ""
        host: str = ""
        port: int = 0

class AddRaftVoterRequestType(MessageType[AddRaftVoterRequest]):
    __call__: type[AddRaftVoterRequest]
    Listener = AddRaftVoterRequest.Listener

class AddRaftVoterResponse(Struct):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

class AddRaftVoterResponseType(MessageType[AddRaftVoterResponse]):
    __call__: type[AddRaftVoterResponse]

class AddRaftVoterApi(Api[AddRaftVoterRequest, AddRaftVoterResponse]):
    request: AddRaftVoterRequestType
    response: AddRaftVoterResponseType
