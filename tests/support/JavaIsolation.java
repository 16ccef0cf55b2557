import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Java's consumers of Kafka and Pulsar wait behind a transaction of either while it is open, and go
 *  on as it ends. Each answer is a line "question = answer"; the arguments are both addresses. */
public class JavaIsolation {
    static String kafka;
    static PulsarClient pulsar;

    interface Open {
        void end(boolean committed) throws Exception;
    }

    interface Begin {
        Open begin(String topic) throws Exception;
    }

    public static void main(String[] addresses) throws Exception {
        kafka = addresses[0];
        pulsar = PulsarClient.builder().serviceUrl(addresses[1]).enableTransaction(true)
            .operationTimeout(30, TimeUnit.SECONDS).build();
        for (boolean committed : new boolean[] {true, false}) {
            for (String writer : List.of("kafka", "pulsar")) {
                Begin begin = writer.equals("kafka") ? JavaIsolation::byKafka : JavaIsolation::byPulsar;
                String topic = writer + (committed ? "-commits" : "-aborts");
                ask(topic, () -> seen(topic, begin, committed));
            }
        }
        pulsar.close();
        System.exit(0);
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

    /** What each reader sees before, while and after a transaction is open. */
    static Object seen(String topic, Begin begin, boolean committed) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", kafka))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
        Map<String, List<String>> found = new TreeMap<>();
        try (KafkaProducer<String, String> plain = producer(null);
             KafkaConsumer<String, String> reads = consumer();
             Consumer<byte[]> subscribed = pulsar.newConsumer().topic(named(topic)).subscriptionName("s")
                 .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
             Reader<byte[]> reader = pulsar.newReader().topic(named(topic))
                 .startMessageId(MessageId.earliest).create()) {
            TopicPartition place = new TopicPartition(topic, 0);
            reads.assign(List.of(place));
            reads.seekToBeginning(List.of(place));
            for (String stage : List.of("1 before", "2 open", "3 ended")) {
                Open open = null;
                if (stage.equals("1 before")) {
                    plain.send(new ProducerRecord<>(topic, 0, "k", "a")).get();
                } else if (stage.equals("2 open")) {
                    open = begin.begin(topic);
                    plain.send(new ProducerRecord<>(topic, 0, "k", "b")).get();
                }
                int wanted = stage.equals("1 before") ? 1 : stage.equals("2 open") ? 0 : committed ? 4 : 1;
                List<String> ofKafka = polled(reads, wanted);
                List<String> ofPulsar = received(subscribed, wanted);
                List<String> ofReader = readOn(reader, wanted);
                found.put(stage, List.of(String.join("", ofKafka), String.join("", ofPulsar),
                    String.join("", ofReader), String.valueOf(reads.position(place)),
                    String.valueOf(reads.endOffsets(List.of(place)).get(place)),
                    String.valueOf(reader.hasMessageAvailable())));
                if (open != null) {
                    open.end(committed);
                }
            }
        }
        return found;
    }

    static String named(String topic) {
        return "persistent://public/default/" + topic + "-partition-0";
    }

    static Open byKafka(String topic) throws Exception {
        KafkaProducer<String, String> producer = producer(topic);
        producer.beginTransaction();
        for (String value : List.of("x", "y", "z")) {
            producer.send(new ProducerRecord<>(topic, 0, "k", value)).get();
        }
        return committed -> {
            if (committed) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
            producer.close();
        };
    }

    static Open byPulsar(String topic) throws Exception {
        Transaction transaction = pulsar.newTransaction().withTransactionTimeout(60, TimeUnit.SECONDS).build().get();
        Producer<byte[]> producer = pulsar.newProducer().topic(named(topic)).sendTimeout(0, TimeUnit.SECONDS).create();
        for (String value : List.of("x", "y", "z")) {
            producer.newMessage(transaction).key("k").value(value.getBytes()).send();
        }
        return committed -> {
            (committed ? transaction.commit() : transaction.abort()).get();
            producer.close();
        };
    }

    static KafkaProducer<String, String> producer(String id) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", kafka);
        if (id != null) {
            settings.put("transactional.id", id);
        }
        KafkaProducer<String, String> made =
            new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        if (id != null) {
            made.initTransactions();
        }
        return made;
    }

    static KafkaConsumer<String, String> consumer() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", kafka);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    /** Waits for as many as are wanted, and a moment longer for one that is not. */
    static List<String> polled(KafkaConsumer<String, String> consumer, int wanted) {
        List<String> values = new ArrayList<>();
        long deadline = System.currentTimeMillis() + 30_000;
        while (values.size() < wanted && System.currentTimeMillis() < deadline) {
            consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
        }
        consumer.poll(Duration.ofMillis(300)).forEach(record -> values.add(record.value()));
        return values;
    }

    static List<String> received(Consumer<byte[]> consumer, int wanted) throws Exception {
        List<String> values = new ArrayList<>();
        Message<byte[]> message;
        while ((message = consumer.receive(values.size() < wanted ? 30_000 : 300, TimeUnit.MILLISECONDS)) != null) {
            values.add(new String(message.getData()));
            consumer.acknowledge(message);
        }
        return values;
    }

    static List<String> readOn(Reader<byte[]> reader, int wanted) throws Exception {
        List<String> values = new ArrayList<>();
        Message<byte[]> message;
        while ((message = reader.readNext(values.size() < wanted ? 30_000 : 300, TimeUnit.MILLISECONDS)) != null) {
            values.add(new String(message.getData()));
        }
        return values;
    }
}
