# Written by `make stubs` from all schemas.

from typing import Literal, overload

from penstock.kafka.wire.messages.api_00_produce import ProduceApi, ProduceRequest, ProduceResponse
from penstock.kafka.wire.messages.api_01_fetch import FetchApi, FetchRequest, FetchResponse
from penstock.kafka.wire.messages.api_02_list_offsets import ListOffsetsApi, ListOffsetsRequest, ListOffsetsResponse
from penstock.kafka.wire.messages.api_03_metadata import MetadataApi, MetadataRequest, MetadataResponse
from penstock.kafka.wire.messages.api_04_leader_and_isr import LeaderAndIsrApi, LeaderAndIsrRequest, LeaderAndIsrResponse
from penstock.kafka.wire.messages.api_05_stop_replica import StopReplicaApi, StopReplicaRequest, StopReplicaResponse
from penstock.kafka.wire.messages.api_06_update_metadata import UpdateMetadataApi, UpdateMetadataRequest, UpdateMetadataResponse
from penstock.kafka.wire.messages.api_07_controlled_shutdown import ControlledShutdownApi, ControlledShutdownRequest, ControlledShutdownResponse
from penstock.kafka.wire.messages.api_08_offset_commit import OffsetCommitApi, OffsetCommitRequest, OffsetCommitResponse
from penstock.kafka.wire.messages.api_09_offset_fetch import OffsetFetchApi, OffsetFetchRequest, OffsetFetchResponse
from penstock.kafka.wire.messages.api_10_find_coordinator import FindCoordinatorApi, FindCoordinatorRequest, FindCoordinatorResponse
from penstock.kafka.wire.messages.api_11_join_group import JoinGroupApi, JoinGroupRequest, JoinGroupResponse
from penstock.kafka.wire.messages.api_12_heartbeat import HeartbeatApi, HeartbeatRequest, HeartbeatResponse
from penstock.kafka.wire.messages.api_13_leave_group import LeaveGroupApi, LeaveGroupRequest, LeaveGroupResponse
from penstock.kafka.wire.messages.api_14_sync_group import SyncGroupApi, SyncGroupRequest, SyncGroupResponse
from penstock.kafka.wire.messages.api_15_describe_groups import DescribeGroupsApi, DescribeGroupsRequest, DescribeGroupsResponse
from penstock.kafka.wire.messages.api_16_list_groups import ListGroupsApi, ListGroupsRequest, ListGroupsResponse
from penstock.kafka.wire.messages.api_17_sasl_handshake import SaslHandshakeApi, SaslHandshakeRequest, SaslHandshakeResponse
from penstock.kafka.wire.messages.api_18_api_versions import ApiVersionsApi, ApiVersionsRequest, ApiVersionsResponse
from penstock.kafka.wire.messages.api_19_create_topics import CreateTopicsApi, CreateTopicsRequest, CreateTopicsResponse
from penstock.kafka.wire.messages.api_20_delete_topics import DeleteTopicsApi, DeleteTopicsRequest, DeleteTopicsResponse
from penstock.kafka.wire.messages.api_21_delete_records import DeleteRecordsApi, DeleteRecordsRequest, DeleteRecordsResponse
from penstock.kafka.wire.messages.api_22_init_producer_id import InitProducerIdApi, InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.api_23_offset_for_leader_epoch import OffsetForLeaderEpochApi, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from penstock.kafka.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnApi, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from penstock.kafka.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnApi, AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from penstock.kafka.wire.messages.api_26_end_txn import EndTxnApi, EndTxnRequest, EndTxnResponse
from penstock.kafka.wire.messages.api_27_write_txn_markers import WriteTxnMarkersApi, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from penstock.kafka.wire.messages.api_28_txn_offset_commit import TxnOffsetCommitApi, TxnOffsetCommitRequest, TxnOffsetCommitResponse
from penstock.kafka.wire.messages.api_29_describe_acls import DescribeAclsApi, DescribeAclsRequest, DescribeAclsResponse
from penstock.kafka.wire.messages.api_30000_list_readers import ListReadersApi, ListReadersRequest, ListReadersResponse
from penstock.kafka.wire.messages.api_30001_describe_segments import DescribeSegmentsApi, DescribeSegmentsRequest, DescribeSegmentsResponse
from penstock.kafka.wire.messages.api_30002_hold_offsets import HoldOffsetsApi, HoldOffsetsRequest, HoldOffsetsResponse
from penstock.kafka.wire.messages.api_30003_end_epoch import EndEpochApi, EndEpochRequest, EndEpochResponse
from penstock.kafka.wire.messages.api_30004_heartbeat_writer import HeartbeatWriterApi, HeartbeatWriterRequest, HeartbeatWriterResponse
from penstock.kafka.wire.messages.api_30005_fetch_stored import FetchStoredApi, FetchStoredRequest, FetchStoredResponse
from penstock.kafka.wire.messages.api_30006_append_at import AppendAtApi, AppendAtRequest, AppendAtResponse
from penstock.kafka.wire.messages.api_30_create_acls import CreateAclsApi, CreateAclsRequest, CreateAclsResponse
from penstock.kafka.wire.messages.api_31_delete_acls import DeleteAclsApi, DeleteAclsRequest, DeleteAclsResponse
from penstock.kafka.wire.messages.api_32_describe_configs import DescribeConfigsApi, DescribeConfigsRequest, DescribeConfigsResponse
from penstock.kafka.wire.messages.api_33_alter_configs import AlterConfigsApi, AlterConfigsRequest, AlterConfigsResponse
from penstock.kafka.wire.messages.api_34_alter_replica_log_dirs import AlterReplicaLogDirsApi, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from penstock.kafka.wire.messages.api_35_describe_log_dirs import DescribeLogDirsApi, DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.kafka.wire.messages.api_36_sasl_authenticate import SaslAuthenticateApi, SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.kafka.wire.messages.api_37_create_partitions import CreatePartitionsApi, CreatePartitionsRequest, CreatePartitionsResponse
from penstock.kafka.wire.messages.api_38_create_delegation_token import CreateDelegationTokenApi, CreateDelegationTokenRequest, CreateDelegationTokenResponse
from penstock.kafka.wire.messages.api_39_renew_delegation_token import RenewDelegationTokenApi, RenewDelegationTokenRequest, RenewDelegationTokenResponse
from penstock.kafka.wire.messages.api_40_expire_delegation_token import ExpireDelegationTokenApi, ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from penstock.kafka.wire.messages.api_41_describe_delegation_token import DescribeDelegationTokenApi, DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
from penstock.kafka.wire.messages.api_42_delete_groups import DeleteGroupsApi, DeleteGroupsRequest, DeleteGroupsResponse
from penstock.kafka.wire.messages.api_43_elect_leaders import ElectLeadersApi, ElectLeadersRequest, ElectLeadersResponse
from penstock.kafka.wire.messages.api_44_incremental_alter_configs import IncrementalAlterConfigsApi, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from penstock.kafka.wire.messages.api_45_alter_partition_reassignments import AlterPartitionReassignmentsApi, AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse
from penstock.kafka.wire.messages.api_46_list_partition_reassignments import ListPartitionReassignmentsApi, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
from penstock.kafka.wire.messages.api_47_offset_delete import OffsetDeleteApi, OffsetDeleteRequest, OffsetDeleteResponse
from penstock.kafka.wire.messages.api_48_describe_client_quotas import DescribeClientQuotasApi, DescribeClientQuotasRequest, DescribeClientQuotasResponse
from penstock.kafka.wire.messages.api_49_alter_client_quotas import AlterClientQuotasApi, AlterClientQuotasRequest, AlterClientQuotasResponse
from penstock.kafka.wire.messages.api_50_describe_user_scram_credentials import DescribeUserScramCredentialsApi, DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse
from penstock.kafka.wire.messages.api_51_alter_user_scram_credentials import AlterUserScramCredentialsApi, AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from penstock.kafka.wire.messages.api_52_vote import VoteApi, VoteRequest, VoteResponse
from penstock.kafka.wire.messages.api_53_begin_quorum_epoch import BeginQuorumEpochApi, BeginQuorumEpochRequest, BeginQuorumEpochResponse
from penstock.kafka.wire.messages.api_54_end_quorum_epoch import EndQuorumEpochApi, EndQuorumEpochRequest, EndQuorumEpochResponse
from penstock.kafka.wire.messages.api_55_describe_quorum import DescribeQuorumApi, DescribeQuorumRequest, DescribeQuorumResponse
from penstock.kafka.wire.messages.api_56_alter_partition import AlterPartitionApi, AlterPartitionRequest, AlterPartitionResponse
from penstock.kafka.wire.messages.api_57_update_features import UpdateFeaturesApi, UpdateFeaturesRequest, UpdateFeaturesResponse
from penstock.kafka.wire.messages.api_58_envelope import EnvelopeApi, EnvelopeRequest, EnvelopeResponse
from penstock.kafka.wire.messages.api_59_fetch_snapshot import FetchSnapshotApi, FetchSnapshotRequest, FetchSnapshotResponse
from penstock.kafka.wire.messages.api_60_describe_cluster import DescribeClusterApi, DescribeClusterRequest, DescribeClusterResponse
from penstock.kafka.wire.messages.api_61_describe_producers import DescribeProducersApi, DescribeProducersRequest, DescribeProducersResponse
from penstock.kafka.wire.messages.api_62_broker_registration import BrokerRegistrationApi, BrokerRegistrationRequest, BrokerRegistrationResponse
from penstock.kafka.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatApi, BrokerHeartbeatRequest, BrokerHeartbeatResponse
from penstock.kafka.wire.messages.api_64_unregister_broker import UnregisterBrokerApi, UnregisterBrokerRequest, UnregisterBrokerResponse
from penstock.kafka.wire.messages.api_65_describe_transactions import DescribeTransactionsApi, DescribeTransactionsRequest, DescribeTransactionsResponse
from penstock.kafka.wire.messages.api_66_list_transactions import ListTransactionsApi, ListTransactionsRequest, ListTransactionsResponse
from penstock.kafka.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsApi, AllocateProducerIdsRequest, AllocateProducerIdsResponse
from penstock.kafka.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatApi, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from penstock.kafka.wire.messages.api_69_consumer_group_describe import ConsumerGroupDescribeApi, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from penstock.kafka.wire.messages.api_70_controller_registration import ControllerRegistrationApi, ControllerRegistrationRequest, ControllerRegistrationResponse
from penstock.kafka.wire.messages.api_71_get_telemetry_subscriptions import GetTelemetrySubscriptionsApi, GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse
from penstock.kafka.wire.messages.api_72_push_telemetry import PushTelemetryApi, PushTelemetryRequest, PushTelemetryResponse
from penstock.kafka.wire.messages.api_73_assign_replicas_to_dirs import AssignReplicasToDirsApi, AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from penstock.kafka.wire.messages.api_74_list_config_resources import ListConfigResourcesApi, ListConfigResourcesRequest, ListConfigResourcesResponse
from penstock.kafka.wire.messages.api_75_describe_topic_partitions import DescribeTopicPartitionsApi, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from penstock.kafka.wire.messages.api_76_share_group_heartbeat import ShareGroupHeartbeatApi, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from penstock.kafka.wire.messages.api_77_share_group_describe import ShareGroupDescribeApi, ShareGroupDescribeRequest, ShareGroupDescribeResponse
from penstock.kafka.wire.messages.api_78_share_fetch import ShareFetchApi, ShareFetchRequest, ShareFetchResponse
from penstock.kafka.wire.messages.api_79_share_acknowledge import ShareAcknowledgeApi, ShareAcknowledgeRequest, ShareAcknowledgeResponse
from penstock.kafka.wire.messages.api_80_add_raft_voter import AddRaftVoterApi, AddRaftVoterRequest, AddRaftVoterResponse
from penstock.kafka.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterApi, RemoveRaftVoterRequest, RemoveRaftVoterResponse
from penstock.kafka.wire.messages.api_82_update_raft_voter import UpdateRaftVoterApi, UpdateRaftVoterRequest, UpdateRaftVoterResponse
from penstock.kafka.wire.messages.api_83_initialize_share_group_state import InitializeShareGroupStateApi, InitializeShareGroupStateRequest, InitializeShareGroupStateResponse
from penstock.kafka.wire.messages.api_84_read_share_group_state import ReadShareGroupStateApi, ReadShareGroupStateRequest, ReadShareGroupStateResponse
from penstock.kafka.wire.messages.api_85_write_share_group_state import WriteShareGroupStateApi, WriteShareGroupStateRequest, WriteShareGroupStateResponse
from penstock.kafka.wire.messages.api_86_delete_share_group_state import DeleteShareGroupStateApi, DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
from penstock.kafka.wire.messages.api_87_read_share_group_state_summary import ReadShareGroupStateSummaryApi, ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse
from penstock.kafka.wire.messages.api_88_streams_group_heartbeat import StreamsGroupHeartbeatApi, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from penstock.kafka.wire.messages.api_89_streams_group_describe import StreamsGroupDescribeApi, StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from penstock.kafka.wire.messages.api_90_describe_share_group_offsets import DescribeShareGroupOffsetsApi, DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from penstock.kafka.wire.messages.api_91_alter_share_group_offsets import AlterShareGroupOffsetsApi, AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from penstock.kafka.wire.messages.api_92_delete_share_group_offsets import DeleteShareGroupOffsetsApi, DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse
from penstock.kafka.wire.messages.api_93_streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateApi, StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse
from penstock.kafka.wire.messages.api_94_unregister_controller import UnregisterControllerApi, UnregisterControllerRequest, UnregisterControllerResponse
from penstock.kafka.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.kafka.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

__all__ = [
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AddRaftVoterRequest",
    "AddRaftVoterResponse",
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "AlterConfigsRequest",
    "AlterConfigsResponse",
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsResponse",
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "AppendAtRequest",
    "AppendAtResponse",
    "AssignReplicasToDirsRequest",
    "AssignReplicasToDirsResponse",
    "BeginQuorumEpochRequest",
    "BeginQuorumEpochResponse",
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "ControlledShutdownRequest",
    "ControlledShutdownResponse",
    "ControllerRegistrationRequest",
    "ControllerRegistrationResponse",
    "CreateAclsRequest",
    "CreateAclsResponse",
    "CreateDelegationTokenRequest",
    "CreateDelegationTokenResponse",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeleteAclsRequest",
    "DeleteAclsResponse",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupStateRequest",
    "DeleteShareGroupStateResponse",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeAclsRequest",
    "DescribeAclsResponse",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
    "DescribeSegmentsRequest",
    "DescribeSegmentsResponse",
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsResponse",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "EndEpochRequest",
    "EndEpochResponse",
    "EndQuorumEpochRequest",
    "EndQuorumEpochResponse",
    "EndTxnRequest",
    "EndTxnResponse",
    "EnvelopeRequest",
    "EnvelopeResponse",
    "ExpireDelegationTokenRequest",
    "ExpireDelegationTokenResponse",
    "FetchRequest",
    "FetchResponse",
    "FetchSnapshotRequest",
    "FetchSnapshotResponse",
    "FetchStoredRequest",
    "FetchStoredResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "GetTelemetrySubscriptionsRequest",
    "GetTelemetrySubscriptionsResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "HeartbeatWriterRequest",
    "HeartbeatWriterResponse",
    "HoldOffsetsRequest",
    "HoldOffsetsResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "InitializeShareGroupStateRequest",
    "InitializeShareGroupStateResponse",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListReadersRequest",
    "ListReadersResponse",
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "ProduceRequest",
    "ProduceResponse",
    "PushTelemetryRequest",
    "PushTelemetryResponse",
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
    "ReadShareGroupStateSummaryRequest",
    "ReadShareGroupStateSummaryResponse",
    "RemoveRaftVoterRequest",
    "RemoveRaftVoterResponse",
    "RenewDelegationTokenRequest",
    "RenewDelegationTokenResponse",
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
    "ShareAcknowledgeRequest",
    "ShareAcknowledgeResponse",
    "ShareFetchRequest",
    "ShareFetchResponse",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "ShareGroupHeartbeatRequest",
    "ShareGroupHeartbeatResponse",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatResponse",
    "StreamsGroupTopologyDescriptionUpdateRequest",
    "StreamsGroupTopologyDescriptionUpdateResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
    "UnregisterControllerRequest",
    "UnregisterControllerResponse",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
    "UpdateMetadataRequest",
    "UpdateMetadataResponse",
    "UpdateRaftVoterRequest",
    "UpdateRaftVoterResponse",
    "VoteRequest",
    "VoteResponse",
    "WriteShareGroupStateRequest",
    "WriteShareGroupStateResponse",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
    "api",
]

@overload
def api(name: Literal["Produce"]) -> ProduceApi: ...
@overload
def api(name: Literal["Fetch"]) -> FetchApi: ...
@overload
def api(name: Literal["ListOffsets"]) -> ListOffsetsApi: ...
@overload
def api(name: Literal["Metadata"]) -> MetadataApi: ...
@overload
def api(name: Literal["LeaderAndIsr"]) -> LeaderAndIsrApi: ...
@overload
def api(name: Literal["StopReplica"]) -> StopReplicaApi: ...
@overload
def api(name: Literal["UpdateMetadata"]) -> UpdateMetadataApi: ...
@overload
def api(name: Literal["ControlledShutdown"]) -> ControlledShutdownApi: ...
@overload
def api(name: Literal["OffsetCommit"]) -> OffsetCommitApi: ...
@overload
def api(name: Literal["OffsetFetch"]) -> OffsetFetchApi: ...
@overload
def api(name: Literal["FindCoordinator"]) -> FindCoordinatorApi: ...
@overload
def api(name: Literal["JoinGroup"]) -> JoinGroupApi: ...
@overload
def api(name: Literal["Heartbeat"]) -> HeartbeatApi: ...
@overload
def api(name: Literal["LeaveGroup"]) -> LeaveGroupApi: ...
@overload
def api(name: Literal["SyncGroup"]) -> SyncGroupApi: ...
@overload
def api(name: Literal["DescribeGroups"]) -> DescribeGroupsApi: ...
@overload
def api(name: Literal["ListGroups"]) -> ListGroupsApi: ...
@overload
def api(name: Literal["SaslHandshake"]) -> SaslHandshakeApi: ...
@overload
def api(name: Literal["ApiVersions"]) -> ApiVersionsApi: ...
@overload
def api(name: Literal["CreateTopics"]) -> CreateTopicsApi: ...
@overload
def api(name: Literal["DeleteTopics"]) -> DeleteTopicsApi: ...
@overload
def api(name: Literal["DeleteRecords"]) -> DeleteRecordsApi: ...
@overload
def api(name: Literal["InitProducerId"]) -> InitProducerIdApi: ...
@overload
def api(name: Literal["OffsetForLeaderEpoch"]) -> OffsetForLeaderEpochApi: ...
@overload
def api(name: Literal["AddPartitionsToTxn"]) -> AddPartitionsToTxnApi: ...
@overload
def api(name: Literal["AddOffsetsToTxn"]) -> AddOffsetsToTxnApi: ...
@overload
def api(name: Literal["EndTxn"]) -> EndTxnApi: ...
@overload
def api(name: Literal["WriteTxnMarkers"]) -> WriteTxnMarkersApi: ...
@overload
def api(name: Literal["TxnOffsetCommit"]) -> TxnOffsetCommitApi: ...
@overload
def api(name: Literal["DescribeAcls"]) -> DescribeAclsApi: ...
@overload
def api(name: Literal["ListReaders"]) -> ListReadersApi: ...
@overload
def api(name: Literal["DescribeSegments"]) -> DescribeSegmentsApi: ...
@overload
def api(name: Literal["HoldOffsets"]) -> HoldOffsetsApi: ...
@overload
def api(name: Literal["EndEpoch"]) -> EndEpochApi: ...
@overload
def api(name: Literal["HeartbeatWriter"]) -> HeartbeatWriterApi: ...
@overload
def api(name: Literal["FetchStored"]) -> FetchStoredApi: ...
@overload
def api(name: Literal["AppendAt"]) -> AppendAtApi: ...
@overload
def api(name: Literal["CreateAcls"]) -> CreateAclsApi: ...
@overload
def api(name: Literal["DeleteAcls"]) -> DeleteAclsApi: ...
@overload
def api(name: Literal["DescribeConfigs"]) -> DescribeConfigsApi: ...
@overload
def api(name: Literal["AlterConfigs"]) -> AlterConfigsApi: ...
@overload
def api(name: Literal["AlterReplicaLogDirs"]) -> AlterReplicaLogDirsApi: ...
@overload
def api(name: Literal["DescribeLogDirs"]) -> DescribeLogDirsApi: ...
@overload
def api(name: Literal["SaslAuthenticate"]) -> SaslAuthenticateApi: ...
@overload
def api(name: Literal["CreatePartitions"]) -> CreatePartitionsApi: ...
@overload
def api(name: Literal["CreateDelegationToken"]) -> CreateDelegationTokenApi: ...
@overload
def api(name: Literal["RenewDelegationToken"]) -> RenewDelegationTokenApi: ...
@overload
def api(name: Literal["ExpireDelegationToken"]) -> ExpireDelegationTokenApi: ...
@overload
def api(name: Literal["DescribeDelegationToken"]) -> DescribeDelegationTokenApi: ...
@overload
def api(name: Literal["DeleteGroups"]) -> DeleteGroupsApi: ...
@overload
def api(name: Literal["ElectLeaders"]) -> ElectLeadersApi: ...
@overload
def api(name: Literal["IncrementalAlterConfigs"]) -> IncrementalAlterConfigsApi: ...
@overload
def api(name: Literal["AlterPartitionReassignments"]) -> AlterPartitionReassignmentsApi: ...
@overload
def api(name: Literal["ListPartitionReassignments"]) -> ListPartitionReassignmentsApi: ...
@overload
def api(name: Literal["OffsetDelete"]) -> OffsetDeleteApi: ...
@overload
def api(name: Literal["DescribeClientQuotas"]) -> DescribeClientQuotasApi: ...
@overload
def api(name: Literal["AlterClientQuotas"]) -> AlterClientQuotasApi: ...
@overload
def api(name: Literal["DescribeUserScramCredentials"]) -> DescribeUserScramCredentialsApi: ...
@overload
def api(name: Literal["AlterUserScramCredentials"]) -> AlterUserScramCredentialsApi: ...
@overload
def api(name: Literal["Vote"]) -> VoteApi: ...
@overload
def api(name: Literal["BeginQuorumEpoch"]) -> BeginQuorumEpochApi: ...
@overload
def api(name: Literal["EndQuorumEpoch"]) -> EndQuorumEpochApi: ...
@overload
def api(name: Literal["DescribeQuorum"]) -> DescribeQuorumApi: ...
@overload
def api(name: Literal["AlterPartition"]) -> AlterPartitionApi: ...
@overload
def api(name: Literal["UpdateFeatures"]) -> UpdateFeaturesApi: ...
@overload
def api(name: Literal["Envelope"]) -> EnvelopeApi: ...
@overload
def api(name: Literal["FetchSnapshot"]) -> FetchSnapshotApi: ...
@overload
def api(name: Literal["DescribeCluster"]) -> DescribeClusterApi: ...
@overload
def api(name: Literal["DescribeProducers"]) -> DescribeProducersApi: ...
@overload
def api(name: Literal["BrokerRegistration"]) -> BrokerRegistrationApi: ...
@overload
def api(name: Literal["BrokerHeartbeat"]) -> BrokerHeartbeatApi: ...
@overload
def api(name: Literal["UnregisterBroker"]) -> UnregisterBrokerApi: ...
@overload
def api(name: Literal["DescribeTransactions"]) -> DescribeTransactionsApi: ...
@overload
def api(name: Literal["ListTransactions"]) -> ListTransactionsApi: ...
@overload
def api(name: Literal["AllocateProducerIds"]) -> AllocateProducerIdsApi: ...
@overload
def api(name: Literal["ConsumerGroupHeartbeat"]) -> ConsumerGroupHeartbeatApi: ...
@overload
def api(name: Literal["ConsumerGroupDescribe"]) -> ConsumerGroupDescribeApi: ...
@overload
def api(name: Literal["ControllerRegistration"]) -> ControllerRegistrationApi: ...
@overload
def api(name: Literal["GetTelemetrySubscriptions"]) -> GetTelemetrySubscriptionsApi: ...
@overload
def api(name: Literal["PushTelemetry"]) -> PushTelemetryApi: ...
@overload
def api(name: Literal["AssignReplicasToDirs"]) -> AssignReplicasToDirsApi: ...
@overload
def api(name: Literal["ListConfigResources"]) -> ListConfigResourcesApi: ...
@overload
def api(name: Literal["DescribeTopicPartitions"]) -> DescribeTopicPartitionsApi: ...
@overload
def api(name: Literal["ShareGroupHeartbeat"]) -> ShareGroupHeartbeatApi: ...
@overload
def api(name: Literal["ShareGroupDescribe"]) -> ShareGroupDescribeApi: ...
@overload
def api(name: Literal["ShareFetch"]) -> ShareFetchApi: ...
@overload
def api(name: Literal["ShareAcknowledge"]) -> ShareAcknowledgeApi: ...
@overload
def api(name: Literal["AddRaftVoter"]) -> AddRaftVoterApi: ...
@overload
def api(name: Literal["RemoveRaftVoter"]) -> RemoveRaftVoterApi: ...
@overload
def api(name: Literal["UpdateRaftVoter"]) -> UpdateRaftVoterApi: ...
@overload
def api(name: Literal["InitializeShareGroupState"]) -> InitializeShareGroupStateApi: ...
@overload
def api(name: Literal["ReadShareGroupState"]) -> ReadShareGroupStateApi: ...
@overload
def api(name: Literal["WriteShareGroupState"]) -> WriteShareGroupStateApi: ...
@overload
def api(name: Literal["DeleteShareGroupState"]) -> DeleteShareGroupStateApi: ...
@overload
def api(name: Literal["ReadShareGroupStateSummary"]) -> ReadShareGroupStateSummaryApi: ...
@overload
def api(name: Literal["StreamsGroupHeartbeat"]) -> StreamsGroupHeartbeatApi: ...
@overload
def api(name: Literal["StreamsGroupDescribe"]) -> StreamsGroupDescribeApi: ...
@overload
def api(name: Literal["DescribeShareGroupOffsets"]) -> DescribeShareGroupOffsetsApi: ...
@overload
def api(name: Literal["AlterShareGroupOffsets"]) -> AlterShareGroupOffsetsApi: ...
@overload
def api(name: Literal["DeleteShareGroupOffsets"]) -> DeleteShareGroupOffsetsApi: ...
@overload
def api(name: Literal["StreamsGroupTopologyDescriptionUpdate"]) -> StreamsGroupTopologyDescriptionUpdateApi: ...
@overload
def api(name: Literal["UnregisterController"]) -> UnregisterControllerApi: ...
