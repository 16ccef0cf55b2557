"""Everything that the sessions of one node share."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from penstock.broker.cluster import Cluster, Owner
from penstock.broker.compaction.compaction import Compaction
from penstock.broker.creations import group_creations
from penstock.broker.groups.census import Census
from penstock.broker.groups.offsets import CommittedOffsets
from penstock.broker.groups.pending_offsets import PendingOffsets
from penstock.broker.groups.registry import GroupRegistry
from penstock.broker.groups.store import DurableGroupStore
from penstock.broker.groups.topic_groups import TopicGroups
from penstock.broker.node import Leadership, begin_leadership, refuse_without_database
from penstock.broker.producers.epochs import ExclusiveEpochs
from penstock.broker.producers.ids import ProducerIds
from penstock.broker.quotas import Quotas
from penstock.broker.retention.retention import Retention
from penstock.broker.schemas.registry import Schemas
from penstock.broker.subscriptions.registry import Subscriptions
from penstock.broker.topics.catalogue import Topics
from penstock.broker.topics.namespaces import Namespaces
from penstock.broker.topics.storage import Storage, made_folder
from penstock.broker.transactions.coordinator import Coordinator
from penstock.broker.transactions.epochs import Epochs
from penstock.broker.transactions.markers import Markers
from penstock.broker.transactions.store import TransactionStore
from penstock.log.layout import DATABASE_FILE
from penstock.memory import Memory
from penstock.metadata.classic_groups import ClassicGroupRepository
from penstock.metadata.epochs import EpochRepository
from penstock.metadata.exclusive_epochs import ExclusiveEpochRepository
from penstock.metadata.namespaces import NamespaceRepository
from penstock.metadata.offsets import OffsetRepository
from penstock.metadata.pending_acknowledgements import PendingAcknowledgementRepository
from penstock.metadata.pending_offsets import PendingOffsetRepository
from penstock.metadata.properties import PropertyRepository
from penstock.metadata.quotas import QuotaRepository
from penstock.metadata.schemas import SchemaRepository
from penstock.metadata.store import MetadataStore
from penstock.metadata.subscriptions import SubscriptionRepository
from penstock.metadata.topic_groups import TopicGroupRepository
from penstock.metadata.topics import TopicRepository
from penstock.metadata.transactions import TransactionRepository
from penstock.slow_steps import blocked_by
from penstock.tasks import all_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.broker.settings import BrokerSettings
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic

logger = logging.getLogger(__name__)

NODE_ID: Final = 0
"""The one node there is."""


class Broker:
    """One node. Sessions reach topics, offsets and groups through it; it knows no protocol."""

    def __init__(
        self,
        store: MetadataStore,
        storage: Storage,
        settings: BrokerSettings,
        leadership: Leadership,
    ) -> None:
        self.settings = settings
        self.memory = Memory(settings.memory_bytes)
        self.cluster = Cluster(leadership.cluster_id, Owner(NODE_ID, leadership.epoch))
        self.data_folder = storage.data_folder
        self._store = store
        self._storage = storage
        self.namespaces = Namespaces(NamespaceRepository(store))
        self.topics = Topics(
            TopicRepository(store),
            storage,
            self.namespaces,
            settings,
            self.memory,
            leadership.cluster_id,
        )
        has_partition = self.topics.has_partition
        self.offsets = CommittedOffsets(OffsetRepository(store), has_partition, self.memory)
        self._group_store = DurableGroupStore(ClassicGroupRepository(store))
        creations = group_creations()
        census = Census()
        self.groups = GroupRegistry(
            settings.groups, self._group_store, self.memory, creations, census
        )
        self.topic_groups = TopicGroups(
            TopicGroupRepository(store), self.topics, creations, census, self.memory
        )
        self._properties = PropertyRepository(store)
        self._reopening = asyncio.Lock()
        self.producer_ids = ProducerIds(self._properties)
        self.exclusive_epochs = ExclusiveEpochs(ExclusiveEpochRepository(store))
        self.subscriptions = Subscriptions(
            SubscriptionRepository(store),
            PendingAcknowledgementRepository(store),
            self.topics,
            self.memory,
        )
        self.quotas = Quotas(QuotaRepository(store))
        check_ms = settings.retention_check_ms
        self.retention = Retention(self.topics, storage, self.subscriptions, check_ms)
        pace = settings.compaction_check_ms, settings.compaction_bytes_per_second
        watched = self.topics, storage, self.subscriptions, self.retention.leases
        self.compaction = Compaction(*watched, *pace)
        self.schemas = Schemas(SchemaRepository(store), self.memory)
        self.pending_offsets = PendingOffsets(
            PendingOffsetRepository(store), self.offsets, has_partition, self.memory
        )
        self.transactions = Coordinator(
            TransactionStore(TransactionRepository(store)),
            Markers(self.topics.partition, leadership.epoch),
            self.producer_ids,
            has_partition,
            settings.transactions,
            self.memory,
        )
        self.transactions.add_participant(self.subscriptions.transactional)
        self.transactions.add_participant(self.pending_offsets)
        self.epochs = Epochs(EpochRepository(store), self.transactions, self.memory)
        self.topics.verification.ask(self.transactions)
        self.topics.deletion.on_partitions(self._forget)
        self.topics.deletion.on_topic(self.schemas.forget)

    @classmethod
    async def open(cls, data_folder: Path, settings: BrokerSettings) -> Broker:
        """Open or create the data folder and recover what the last run left unfinished.

        Each time is a new leadership of all partitions, with an epoch of its own. Blocks, for
        nothing is served yet. Raises DataFolderError, MetadataError and OSError.
        """
        refuse_without_database(data_folder)
        store = MetadataStore.open(made_folder(data_folder) / DATABASE_FILE)
        properties = PropertyRepository(store)
        try:
            leadership = begin_leadership(data_folder, properties)
        except BaseException:
            store.close_now()
            raise
        storage = Storage(data_folder, leadership.epoch)
        broker = cls(store, storage, settings, leadership)
        with blocked_by("reading what the database %s has", data_folder / DATABASE_FILE):
            broker._load()
        return broker

    async def reopen(self, partition: Partition) -> bool:
        """Open the log of a partition anew, after a flush has failed; False where none has.

        Raises MetadataError, UnknownTopicError and LogNotOpenError.
        """
        async with self._reopening:
            if not partition.has_failed:
                return False
            await partition.reopen(await self._properties.take_epoch())
            logger.warning("%s: open again, with what is on the disk", partition.name)
            return True

    async def close(self) -> None:
        """Make everything durable and let the data folder go. No session may be left."""
        await self.retention.close()
        await self.compaction.close()
        await all_uninterrupted()
        await self.transactions.close()
        await self.subscriptions.close()
        self.groups.stop()
        await self._group_store.close()
        await self.topics.close()
        await self._store.close()
        self._storage.close()

    def _load(self) -> None:
        self.topics.load()
        if not self._properties.folders_are_identified():
            self.topics.identify()
            self._properties.folders_were_identified()
        self.topic_groups.load()
        self.subscriptions.load()
        self.exclusive_epochs.load()
        self.quotas.load()
        self.schemas.load()
        self.pending_offsets.load()
        self.transactions.load()
        self.topics.watch()
        self.retention.watch()
        self.compaction.watch()
        # Last: sessions of members begin with it.
        self.groups.restore(self._group_store.load())

    def _forget(self, _topic: Topic, partitions: Sequence[Partition]) -> None:
        self.offsets.forget_partitions(partition.id for partition in partitions)
        self.exclusive_epochs.forget(partition.id for partition in partitions)
        self.subscriptions.forget(partitions)
