import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerEventListener;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageRoutingMode;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;

/**
 * What only Java's client of Pulsar does, one thing after another.
 *
 *     java -cp 'libraries/*' PulsarProbe.java pulsar://127.0.0.1:6650
 *
 * It prints what came of each, as "WORD RESULT". At "grow", "end" and "kill" it waits for a line:
 * the broker's side of it is done then.
 */
public class PulsarProbe {
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));
    private static PulsarClient client;

    public static void main(String[] words) throws Exception {
        client = PulsarClient.builder().serviceUrl(words[0]).operationTimeout(30, TimeUnit.SECONDS).build();
        Producer<byte[]> producer = client.newProducer().topic("ended").create();
        Consumer<byte[]> consumer = earliest("ended");
        indexes(producer, consumer);
        schemas();
        pattern();
        growth();
        failover();
        nonPersistent();
        fencing();
        end(producer, consumer);
        crash();
        client.close();
    }

    private static void indexes(Producer<byte[]> producer, Consumer<byte[]> consumer) throws Exception {
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            sent.add(producer.sendAsync(new byte[] {(byte) number}));
        }
        for (CompletableFuture<MessageId> each : sent) {
            each.get();
        }
        List<Long> found = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            Message<byte[]> message = consumer.receive(20, TimeUnit.SECONDS);
            found.add(message.getIndex().get());
            consumer.acknowledge(message);
        }
        say("index " + found);
    }

    public static class Order {
        public int number;
        public String text;
    }

    public static class LongerOrder {
        public int number;
        public String text;
        public Long more;
    }

    public static class OtherOrder {
        public int id;
    }

    private static void schemas() throws Exception {
        say("string " + passed("strings", Schema.STRING, "ü"));
        say("number " + passed("numbers", Schema.INT32, 7));
        Order order = new Order();
        order.number = 7;
        order.text = "ü";
        say("json " + ((Order) passed("jsons", Schema.JSON(Order.class), order)).text);
        say("avro " + ((Order) passed("avros", Schema.AVRO(Order.class), order)).text);
        LongerOrder longer = new LongerOrder();
        longer.number = 8;
        Object read = passed("avros", Schema.AVRO(LongerOrder.class), longer);
        say("longer " + ((LongerOrder) read).number);
        say("pair " + passed("pairs", Schema.KeyValue(Schema.STRING, Schema.INT32), new KeyValue<>("a", 1)));
        say("other " + error(() -> client.newProducer(Schema.AVRO(OtherOrder.class)).topic("avros").create()));
        say("reader " + error(() -> client.newConsumer(Schema.STRING).topic("avros").subscriptionName("x").subscribe()));
        Consumer<GenericRecord> any = client.newConsumer(Schema.AUTO_CONSUME()).topic("avros").subscriptionName("any")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        List<Object> numbers = new ArrayList<>();
        for (int count = 0; count < 2; count++) {
            numbers.add(any.receive(20, TimeUnit.SECONDS).getValue().getField("number"));
        }
        say("any " + numbers);
        Producer<byte[]> same = client.newProducer(Schema.AUTO_PRODUCE_BYTES()).topic("strings").create();
        same.send("raw".getBytes());
        say("raw " + client.newConsumer(Schema.STRING).topic("strings").subscriptionName("s").subscribe()
                .receive(20, TimeUnit.SECONDS).getValue());
    }

    private static <T> T passed(String topic, Schema<T> schema, T value) throws Exception {
        try (Producer<T> producer = client.newProducer(schema).topic(topic).create();
                Consumer<T> consumer = client.newConsumer(schema).topic(topic).subscriptionName("s")
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            producer.send(value);
            Message<T> message = consumer.receive(20, TimeUnit.SECONDS);
            consumer.acknowledge(message);
            return message.getValue();
        }
    }

    private static void pattern() throws Exception {
        Consumer<byte[]> consumer = client.newConsumer().topicsPattern(Pattern.compile("public/default/watched-.*"))
                .patternAutoDiscoveryPeriod(3600, TimeUnit.SECONDS).subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        client.newProducer().topic("watched-1").create().send("seen".getBytes());
        Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
        say("pattern " + (message == null ? "nothing" : new String(message.getData())));
    }

    private static void growth() throws Exception {
        Producer<byte[]> producer = client.newProducer().topic("growing").enableBatching(false)
                .autoUpdatePartitionsInterval(1, TimeUnit.SECONDS)
                .messageRoutingMode(MessageRoutingMode.RoundRobinPartition).create();
        Consumer<byte[]> consumer = client.newConsumer().topic("growing").subscriptionName("s")
                .autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).subscribe();
        wait("grow");
        Set<String> seen = new TreeSet<>();
        long end = System.currentTimeMillis() + 30_000;
        while (seen.size() < 3 && System.currentTimeMillis() < end) {
            producer.send("x".getBytes());
            Message<byte[]> message = consumer.receive(200, TimeUnit.MILLISECONDS);
            if (message != null) {
                seen.add(message.getTopicName().replaceAll(".*-", ""));
            }
        }
        say("partitions " + seen);
    }

    private static void failover() throws Exception {
        CompletableFuture<String> turn = new CompletableFuture<>();
        client.newConsumer().topic("ended").subscriptionName("failover").subscriptionType(SubscriptionType.Failover)
                .consumerEventListener(new ConsumerEventListener() {
                    public void becameActive(Consumer<?> consumer, int partition) {
                        turn.complete("active");
                    }

                    public void becameInactive(Consumer<?> consumer, int partition) {
                        turn.complete("inactive");
                    }
                }).subscribe();
        say("failover " + turn.get(30, TimeUnit.SECONDS));
    }

    private static void nonPersistent() throws Exception {
        String topic = "non-persistent://public/default/passing";
        Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe();
        Producer<byte[]> producer = client.newProducer().topic(topic).create();
        Message<byte[]> message = null;
        for (int tries = 0; tries < 50 && message == null; tries++) {
            producer.send("passing".getBytes());
            message = consumer.receive(500, TimeUnit.MILLISECONDS);
        }
        consumer.acknowledge(message);
        say("non-persistent " + new String(message.getData()));
    }

    private static void fencing() throws Exception {
        ProducerAccessMode mode = ProducerAccessMode.ExclusiveWithFencing;
        Producer<byte[]> first = client.newProducer().topic("alone").accessMode(mode).create();
        Producer<byte[]> second = client.newProducer().topic("alone").accessMode(mode).create();
        say("fenced " + error(() -> first.send("x".getBytes())));
        second.send("y".getBytes());
    }

    private static void end(Producer<byte[]> producer, Consumer<byte[]> consumer) throws Exception {
        wait("end");
        long end = System.currentTimeMillis() + 30_000;
        while (!consumer.hasReachedEndOfTopic() && System.currentTimeMillis() < end) {
            Thread.sleep(20);
        }
        say("ended " + consumer.hasReachedEndOfTopic());
        say("send " + error(() -> producer.send("no".getBytes())));
    }

    private static void crash() throws Exception {
        int count = 500;
        Producer<byte[]> producer = client.newProducer().topic("killed").producerName("java")
                .sendTimeout(120, TimeUnit.SECONDS).create();
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            sent.add(producer.sendAsync(Integer.toString(number).getBytes()));
            if (number == count / 2) {
                wait("kill");
            }
        }
        for (CompletableFuture<MessageId> each : sent) {
            each.get(120, TimeUnit.SECONDS);
        }
        Consumer<byte[]> consumer = earliest("killed");
        boolean once = true;
        for (int number = 0; number < count; number++) {
            once &= new String(consumer.receive(30, TimeUnit.SECONDS).getData()).equals(Integer.toString(number));
        }
        say("once " + (once && consumer.receive(500, TimeUnit.MILLISECONDS) == null));
    }

    private static Consumer<byte[]> earliest(String topic) throws Exception {
        return client.newConsumer().topic(topic).subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    private interface Attempt {
        Object make() throws PulsarClientException;
    }

    private static String error(Attempt attempt) {
        try {
            attempt.make();
            return "nothing";
        } catch (PulsarClientException error) {
            return error.getClass().getSimpleName();
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void wait(String line) throws Exception {
        say(line);
        IN.readLine();
    }
}
