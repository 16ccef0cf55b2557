import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One member of a consumer group, as a Java service has it.
 *
 *     java -cp 'libraries/*' JavaMember.java 127.0.0.1:9092 group topic classic
 *
 * It polls for ever and prints "read PARTITION OFFSET VALUE", "assigned N", "revoked N" and
 * "lost N". To a line "commit" it answers "committed" or "refused ERROR", to "close" it ends.
 */
public class JavaMember {
    public static void main(String[] words) throws Exception {
        var settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("group.id", words[1]);
        settings.put("group.protocol", words[3]);
        settings.put("enable.auto.commit", "false");
        // From Kafka 4.0 on a client whose only broker is gone forgets what partitions there are, and
        // the leader of a group that looks at that moment rebalances by itself.
        settings.put("metadata.recovery.strategy", "none");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        var asked = new ConcurrentLinkedQueue<String>();
        listen(asked);
        // Without them commitSync leaves out, in silence, what it asks the new leader about.
        var next = new HashMap<TopicPartition, OffsetAndMetadata>();
        try (var consumer = new KafkaConsumer<String, String>(settings)) {
            consumer.subscribe(List.of(words[2]), new Listener());
            while (true) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    tell("read " + record.partition() + " " + record.offset() + " " + record.value());
                    var place = new TopicPartition(record.topic(), record.partition());
                    next.put(place, new OffsetAndMetadata(record.offset() + 1));
                }
                var command = asked.poll();
                if ("commit".equals(command)) {
                    commit(consumer, next);
                } else if ("close".equals(command)) {
                    return;
                }
            }
        } catch (Exception error) {
            tell("ended " + error);
        }
    }

    private static void commit(
            KafkaConsumer<String, String> consumer, Map<TopicPartition, OffsetAndMetadata> next) {
        try {
            consumer.commitSync(next, Duration.ofSeconds(60));
            tell("committed");
        } catch (Exception error) {
            tell("refused " + error);
        }
    }

    private static void listen(ConcurrentLinkedQueue<String> asked) {
        var input = new BufferedReader(new InputStreamReader(System.in));
        var thread = new Thread(() -> input.lines().forEach(asked::add));
        thread.setDaemon(true);
        thread.start();
    }

    private static synchronized void tell(String line) {
        System.out.println(line);
    }

    private static class Listener implements ConsumerRebalanceListener {
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tell("assigned " + partitions.size());
        }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            tell("revoked " + partitions.size());
        }

        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            tell("lost " + partitions.size());
        }
    }
}
