import java.nio.ByteBuffer;
import java.util.*;
import kafka.api.ConsumerMetadataRequest;
import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.common.TopicAndPartition;
import kafka.javaapi.ConsumerMetadataResponse;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.TopicMetadata;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndOffset;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;

/** The producer and the SimpleConsumer of Kafka 0.8.2, in Scala, for which the guide of the time was written. */
public class OldJava {
    public static void main(String[] words) throws Exception {
        if (words[0].equals("produce")) produce(words[1], words[2], Integer.parseInt(words[3]), words[4], words[5]);
        else consume(words[1], words[2], Integer.parseInt(words[3]), words[4], Integer.parseInt(words[5]));
    }

    static void produce(String address, String topic, int count, String codec, String acks) {
        Properties settings = new Properties();
        settings.put("metadata.broker.list", address);
        settings.put("serializer.class", "kafka.serializer.StringEncoder");
        settings.put("request.required.acks", acks);
        settings.put("compression.codec", codec);
        settings.put("producer.type", "sync");
        Producer<String, String> producer = new Producer<>(new ProducerConfig(settings));
        List<KeyedMessage<String, String>> messages = new ArrayList<>();
        for (int n = 0; n < count; n++) messages.add(new KeyedMessage<>(topic, "value " + n));
        producer.send(messages);
        producer.send(new KeyedMessage<>(topic, "key", "with a key"));
        producer.close();
    }

    static void consume(String address, String topic, int count, String group, int bytes) throws Exception {
        String[] place = address.split(":");
        SimpleConsumer consumer = new SimpleConsumer(place[0], Integer.parseInt(place[1]), 30000, 65536, "old");
        TopicAndPartition partition = new TopicAndPartition(topic, 0);
        TopicMetadata metadata = consumer.send(new TopicMetadataRequest(List.of(topic))).topicsMetadata().get(0);
        System.out.println("{\"leader\": " + metadata.partitionsMetadata().get(0).leader().id() + "}");
        kafka.javaapi.OffsetFetchResponse fetched = consumer.fetchOffsets(
            new kafka.javaapi.OffsetFetchRequest(group, List.of(partition), (short) 1, 0, "old"));
        long offset = Math.max(0, fetched.offsets().get(partition).offset());
        int seen = 0;
        while (seen < count) {
            kafka.api.FetchRequest request = new FetchRequestBuilder().clientId("old").maxWait(1000).minBytes(1)
                .addFetch(topic, 0, offset, bytes).build();
            FetchResponse response = consumer.fetch(request);
            if (response.hasError()) throw new IllegalStateException("error " + response.errorCode(topic, 0));
            for (MessageAndOffset found : response.messageSet(topic, 0)) {
                if (found.offset() < offset) continue;
                offset = found.nextOffset();
                String key = found.message().hasKey() ? "\"" + text(found.message().key()) + "\"" : "null";
                System.out.println("[" + found.offset() + ", " + key + ", \"" + text(found.message().payload()) + "\"]");
                if (++seen == count) break;
            }
        }
        consumer.commitOffsets(new kafka.javaapi.OffsetCommitRequest(group,
            Map.of(partition, new kafka.common.OffsetAndMetadata(offset, "note", -1L)), 0, "old", (short) 1));
        Map<TopicAndPartition, PartitionOffsetRequestInfo> asked =
            Map.of(partition, new PartitionOffsetRequestInfo(kafka.api.OffsetRequest.LatestTime(), 9));
        long[] ends = consumer.getOffsetsBefore(new kafka.javaapi.OffsetRequest(asked, (short) 0, "old")).offsets(topic, 0);
        System.out.println("{\"ends\": " + Arrays.toString(ends) + "}");
        ConsumerMetadataResponse found = ConsumerMetadataResponse.readFrom(ask(consumer, group));
        System.out.println("{\"coordinator\": " + found.coordinator().id() + "}");
        consumer.close();
    }

    /** There is no method for it: the high-level consumer asks over a channel of its own. */
    static ByteBuffer ask(SimpleConsumer consumer, String group) throws Exception {
        kafka.network.BlockingChannel channel = new kafka.network.BlockingChannel(
            consumer.host(), consumer.port(), 65536, 65536, 30000);
        channel.connect();
        channel.send(new ConsumerMetadataRequest(group, (short) 0, 0, "old"));
        ByteBuffer answer = channel.receive().buffer();
        channel.disconnect();
        return answer;
    }

    static String text(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return new String(bytes);
    }
}
