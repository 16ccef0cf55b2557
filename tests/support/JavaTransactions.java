import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;

/** Transactions of today's Java producer, a loop of read, process and write, and Kafka Streams with
 *  exactly_once_v2. Each answer is a line "question = answer"; the only argument is the address. */
public class JavaTransactions {
    static String address;

    public static void main(String[] words) throws Exception {
        address = words[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.createTopics(List.of(new NewTopic("in", 2, (short) 1), new NewTopic("out", 2, (short) 1),
                new NewTopic("words", 2, (short) 1), new NewTopic("counts", 2, (short) 1))).all().get();
        }
        ask("a producer commits and aborts", JavaTransactions::commitAndAbort);
        ask("its successor fences it", JavaTransactions::fence);
        ask("what is read committed", () -> read("in", "read_committed").size());
        ask("what is read uncommitted", () -> read("in", "read_uncommitted").size());
        ask("a loop copies", JavaTransactions::copy);
        ask("what it wrote", () -> read("out", "read_committed").size());
        ask("streams count", JavaTransactions::streams);
    }

    static void ask(String question, Callable<Object> asked) {
        String answer;
        try {
            answer = String.valueOf(asked.call());
        } catch (Exception error) {
            error.printStackTrace();
            answer = error.getClass().getSimpleName();
        }
        System.out.println(question + " = " + answer);
    }

    static KafkaProducer<String, String> producer(String id) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("transactional.id", id);
        KafkaProducer<String, String> made =
            new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        made.initTransactions();
        return made;
    }

    static Object commitAndAbort() throws Exception {
        try (KafkaProducer<String, String> producer = producer("java")) {
            for (int transaction = 0; transaction < 20; transaction++) {
                producer.beginTransaction();
                for (int number = 0; number < 10; number++) {
                    producer.send(new ProducerRecord<>("in", number % 2, "k", "v" + transaction));
                }
                if (transaction % 4 == 3) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        return "done";
    }

    static Object fence() throws Exception {
        try (KafkaProducer<String, String> first = producer("fenced");
             KafkaProducer<String, String> second = producer("fenced")) {
            first.beginTransaction();
            try {
                first.send(new ProducerRecord<>("in", 0, "k", "never")).get();
                first.commitTransaction();
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                return cause.getClass().getSimpleName();
            }
        }
        return "it was not";
    }

    static KafkaConsumer<String, String> consumer(String group, String isolation) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", isolation);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static List<String> read(String topic, String isolation) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(topic + isolation, isolation)) {
            List<TopicPartition> places = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
            consumer.assign(places);
            consumer.seekToBeginning(places);
            Map<TopicPartition, Long> ends = consumer.endOffsets(places);
            while (places.stream().anyMatch(place -> consumer.position(place) < ends.get(place))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    values.add(record.value());
                }
            }
        }
        return values;
    }

    static Object copy() throws Exception {
        int copied = 0;
        try (KafkaConsumer<String, String> consumer = consumer("copy", "read_committed");
             KafkaProducer<String, String> producer = producer("copy")) {
            consumer.subscribe(List.of("in"));
            long deadline = System.currentTimeMillis() + 60_000;
            while (copied < 150 && System.currentTimeMillis() < deadline) {
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    producer.send(new ProducerRecord<>("out", record.partition(), record.key(), record.value()));
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                    copied++;
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
            }
        }
        return copied;
    }

    static Object streams() throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "counting");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("state"));
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 50);
        try (KafkaProducer<String, String> producer = producer("words")) {
            for (int round = 0; round < 50; round++) {
                producer.beginTransaction();
                for (String word : List.of("a", "b", "c")) {
                    producer.send(new ProducerRecord<>("words", word, word));
                }
                if (round % 5 == 4) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        Map<String, String> counts = new TreeMap<>();
        for (int run = 0; run < 2; run++) {  // The second one goes on with the state of the first.
            StreamsBuilder builder = new StreamsBuilder();
            builder.<String, String>stream("words").groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                .count().toStream().mapValues(String::valueOf).to("counts");
            long deadline = System.currentTimeMillis() + 60_000;
            try (KafkaStreams streams = new KafkaStreams(builder.build(), settings);
                 KafkaConsumer<String, String> consumer = consumer("counts" + run, "read_committed")) {
                streams.start();
                consumer.subscribe(List.of("counts"));
                while (System.currentTimeMillis() < deadline && !counts.toString().equals("{a=40, b=40, c=40}")) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                        counts.put(record.key(), record.value());
                    }
                }
            }
        }
        return counts;
    }
}
