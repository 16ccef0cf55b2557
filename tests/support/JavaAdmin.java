import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.common.quota.*;

/**
 * Asks a broker all that Kafka's Admin client can ask of one, and prints a line for each question:
 * its name and what was answered, or the exception and its message.
 *
 * Arguments: bootstrap servers.
 */
public final class JavaAdmin {
    private static final String TOPIC = "events";
    private static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "request.timeout.ms", 10000,
            "default.api.timeout.ms", 15000);
        try (Admin admin = Admin.create(settings)) {
            topics(admin);
            records(servers);
            partitions(admin);
            groups(admin);
            configs(admin);
            quotas(admin);
            cluster(admin);
            others(admin);
        }
    }

    private static void topics(Admin admin) {
        ask("createTopics", () -> {
            CreateTopicsResult made = admin.createTopics(List.of(
                new NewTopic(TOPIC, 3, (short) 1).configs(Map.of("max.message.bytes", "2000000"))));
            return made.numPartitions(TOPIC).get() + " " + made.config(TOPIC).get().get("max.message.bytes").value();
        });
        ask("listTopics", () -> admin.listTopics().names().get());
        ask("describeTopics", () -> {
            TopicDescription topic = admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC);
            return topic.partitions().size() + " " + topic.partitions().get(0).elr();
        });
        ask("describeTopics by id", () -> {
            Uuid id = admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC).topicId();
            return admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id).name();
        });
        ask("describeTopics of none", () -> admin.describeTopics(List.of("missing")).allTopicNames().get());
        ask("createPartitions", () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(4))).all().get());
        ask("createTopics again", () -> admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get());
        ask("createTopics, checked only", () -> admin.createTopics(
            List.of(new NewTopic("checked", 1, (short) 1)), new CreateTopicsOptions().validateOnly(true)).all().get());
    }

    private static void records(String servers) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        ask("a producer", () -> {
            try (Producer<String, String> producer = new KafkaProducer<>(settings)) {
                for (int n = 0; n < 10; n++) {
                    producer.send(new ProducerRecord<>(TOPIC, 0, "key", "value " + n)).get();
                }
                return "";
            }
        });
        ask("clientInstanceId", () -> {
            try (Producer<String, String> producer = new KafkaProducer<>(settings)) {
                producer.send(new ProducerRecord<>(TOPIC, 1, "key", "value")).get();
                return producer.clientInstanceId(Duration.ofSeconds(10)).equals(Uuid.ZERO_UUID) ? "none" : "one";
            }
        });
        settings.put("group.id", "readers");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        ask("a consumer", () -> {
            try (Consumer<String, String> consumer = new KafkaConsumer<>(settings)) {
                consumer.subscribe(List.of(TOPIC));
                int count = 0;
                long deadline = System.currentTimeMillis() + 20000;
                while (count < 11 && System.currentTimeMillis() < deadline) {
                    count += consumer.poll(Duration.ofMillis(200)).count();
                }
                consumer.commitSync();
                return count;
            }
        });
    }

    private static void partitions(Admin admin) {
        ask("listOffsets", () -> admin.listOffsets(Map.of(PARTITION, OffsetSpec.latest())).all().get().get(PARTITION).offset());
        ask("listOffsets, the largest timestamp", () ->
            admin.listOffsets(Map.of(PARTITION, OffsetSpec.maxTimestamp())).all().get().get(PARTITION).offset());
        ask("listOffsets, what is local", () ->
            admin.listOffsets(Map.of(PARTITION, OffsetSpec.earliestLocal())).all().get().get(PARTITION).offset());
        ask("listOffsets, what is in tiers", () ->
            admin.listOffsets(Map.of(PARTITION, OffsetSpec.latestTiered())).all().get().get(PARTITION).offset());
        ask("deleteRecords", () -> admin.deleteRecords(Map.of(PARTITION, RecordsToDelete.beforeOffset(4)))
            .lowWatermarks().get(PARTITION).get().lowWatermark());
        ask("listOffsets, the earliest", () ->
            admin.listOffsets(Map.of(PARTITION, OffsetSpec.earliest())).all().get().get(PARTITION).offset());
        ask("describeProducers", () ->
            admin.describeProducers(List.of(PARTITION)).partitionResult(PARTITION).get().activeProducers().size());
        ask("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments().get());
        ask("alterPartitionReassignments", () -> admin.alterPartitionReassignments(
            Map.of(PARTITION, Optional.of(new NewPartitionReassignment(List.of(0))))).all().get());
        ask("electLeaders", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(PARTITION)).all().get());
        ask("electLeaders of all", () -> admin.electLeaders(ElectionType.PREFERRED, null).partitions().get());
        ask("describeLogDirs", () -> {
            int node = admin.describeCluster().nodes().get().iterator().next().id();
            LogDirDescription folder = admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node)
                .values().iterator().next();
            return folder.replicaInfos().size() + " " + folder.totalBytes().isPresent();
        });
        ask("describeReplicaLogDirs", () -> {
            int node = admin.describeCluster().nodes().get().iterator().next().id();
            TopicPartitionReplica replica = new TopicPartitionReplica(TOPIC, 0, node);
            return admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica)
                .getCurrentReplicaOffsetLag();
        });
    }

    private static void groups(Admin admin) {
        ask("listGroups", () -> admin.listGroups().all().get().iterator().next().groupId());
        ask("describeConsumerGroups", () ->
            admin.describeConsumerGroups(List.of("readers")).all().get().get("readers").groupState());
        ask("describeClassicGroups", () ->
            admin.describeClassicGroups(List.of("readers")).all().get().get("readers").state());
        ask("describeConsumerGroups of none", () -> admin.describeConsumerGroups(List.of("missing")).all().get());
        ask("listConsumerGroupOffsets", () -> admin.listConsumerGroupOffsets("readers")
            .partitionsToOffsetAndMetadata().get().get(PARTITION).offset());
        ask("alterConsumerGroupOffsets", () -> admin.alterConsumerGroupOffsets("readers",
            Map.of(PARTITION, new OffsetAndMetadata(5))).all().get());
        ask("deleteConsumerGroupOffsets", () -> admin.deleteConsumerGroupOffsets("readers", Set.of(PARTITION)).all().get());
        ask("deleteConsumerGroups", () -> admin.deleteConsumerGroups(List.of("readers")).all().get());
        ask("describeShareGroups", () -> admin.describeShareGroups(List.of("readers")).all().get());
        ask("describeStreamsGroups", () -> admin.describeStreamsGroups(List.of("readers")).all().get());
    }

    private static void configs(Admin admin) {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        ask("describeConfigs", () -> admin.describeConfigs(List.of(topic)).all().get().get(topic)
            .get("max.message.bytes").value());
        ask("incrementalAlterConfigs", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(new AlterConfigOp(
            new ConfigEntry("max.message.bytes", "3000000"), AlterConfigOp.OpType.SET)))).all().get());
        ask("describeConfigs after it", () -> admin.describeConfigs(List.of(topic)).all().get().get(topic)
            .get("max.message.bytes").value());
        ask("incrementalAlterConfigs of what is no setting", () -> admin.incrementalAlterConfigs(Map.of(topic,
            List.of(new AlterConfigOp(new ConfigEntry("no.such", "1"), AlterConfigOp.OpType.SET)))).all().get());
        ask("describeConfigs of a broker", () -> {
            String node = admin.describeCluster().nodes().get().iterator().next().idString();
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, node);
            return admin.describeConfigs(List.of(broker)).all().get().get(broker).get("log.retention.ms") != null;
        });
        ask("describeConfigs of a group", () -> {
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "readers");
            return admin.describeConfigs(List.of(group)).all().get().get(group).entries().size() > 0;
        });
        ask("listConfigResources", () -> admin.listConfigResources().all().get().size() > 0);
        ask("describeConfigs of metrics", () -> {
            ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "m");
            return admin.describeConfigs(List.of(metrics)).all().get().get(metrics).get("interval.ms").value();
        });
    }

    private static void quotas(Admin admin) {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "somebody"));
        ask("alterClientQuotas", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1048576.0))))).all().get());
        ask("describeClientQuotas", () ->
            admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().get(entity));
        ask("alterClientQuotas of what is not in effect", () -> admin.alterClientQuotas(List.of(
            new ClientQuotaAlteration(entity, List.of(
                new ClientQuotaAlteration.Op("request_percentage", 50.0))))).all().get());
    }

    private static void cluster(Admin admin) {
        ask("describeCluster", () -> {
            DescribeClusterResult cluster = admin.describeCluster();
            return cluster.nodes().get().size() + " " + cluster.controller().get().idString()
                .equals(cluster.nodes().get().iterator().next().idString());
        });
        ask("describeFeatures", () -> admin.describeFeatures().featureMetadata().get().finalizedFeatures().keySet().stream().sorted().toList());
        ask("updateFeatures", () -> {
            Map<String, FinalizedVersionRange> is = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
            short level = is.get("metadata.version").maxVersionLevel();
            return admin.updateFeatures(Map.of("metadata.version",
                new FeatureUpdate(level, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).all().get();
        });
        ask("updateFeatures to what is not here", () -> admin.updateFeatures(Map.of("metadata.version",
            new FeatureUpdate((short) 999, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).all().get());
        ask("describeMetadataQuorum", () -> {
            QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
            return quorum.voters().size() + " " + (quorum.leaderId() == quorum.voters().get(0).replicaId());
        });
    }

    private static void others(Admin admin) {
        ask("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
        ask("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all().get());
        ask("describeDelegationToken", () -> admin.describeDelegationToken().delegationTokens().get());
        ask("listTransactions", () -> admin.listTransactions().all().get());
        ask("describeTransactions", () -> admin.describeTransactions(List.of("one")).all().get());
        ask("fenceProducers", () -> {
            admin.fenceProducers(List.of("one")).all().get();
            return "done";
        });
        ask("unregisterBroker", () -> admin.unregisterBroker(0).all().get());
        ask("deleteTopics", () -> admin.deleteTopics(List.of(TOPIC)).all().get());
    }

    private static void ask(String name, Callable<Object> question) {
        String answer;
        try {
            Object said = question.call();
            answer = said == null ? "done" : said.toString();
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            answer = cause.getClass().getSimpleName() + ": " + cause.getMessage();
        } catch (Exception error) {
            answer = "! " + error;
        }
        System.out.println(name + " = " + answer);
    }
}
