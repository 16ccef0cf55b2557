import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.KeySharedPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * What consumers of Java's client of Pulsar see that share a topic by keys, one thing after another.
 *
 *     java -cp 'libraries/*' PulsarKeys.java pulsar://127.0.0.1:6650
 *
 * It prints what came of each, as "WORD RESULT".
 */
public class PulsarKeys {
    private static final int KEYS = 40;
    private static PulsarClient client;

    public static void main(String[] words) throws Exception {
        client = PulsarClient.builder().serviceUrl(words[0]).operationTimeout(30, TimeUnit.SECONDS)
                .enableTransaction(true).build();
        spread("singles", BatcherBuilder.DEFAULT, false);
        spread("batches", BatcherBuilder.KEY_BASED, true);
        chosen();
        readers();
        transactions();
        chunks();
        delays();
        client.close();
    }

    private static ConsumerBuilder<byte[]> keyShared(String topic, String name) {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Key_Shared)
                .consumerName(name).subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .receiverQueueSize(20).enableBatchIndexAcknowledgment(true);
    }

    /** Of each key its messages, numbered from 0 on, and who had them. */
    private static class Seen {
        private final Map<String, List<Integer>> numbers = new TreeMap<>();
        private final Map<String, List<String>> names = new TreeMap<>();
        private int count;

        synchronized void add(String name, Message<byte[]> message) {
            String value = new String(message.getData());
            numbers.computeIfAbsent(message.getKey(), key -> new ArrayList<>())
                    .add(Integer.parseInt(value.substring(0, value.indexOf(' '))));
            List<String> of = names.computeIfAbsent(message.getKey(), key -> new ArrayList<>());
            if (!of.contains(name)) {
                of.add(name);
            }
            count++;
        }

        /** What each of the keys has: "in order" where that is each number once, in their order. */
        synchronized String order(int each) {
            for (Map.Entry<String, List<Integer>> entry : numbers.entrySet()) {
                List<Integer> of = entry.getValue();
                for (int number = 0; number < Math.max(of.size(), each); number++) {
                    if (number >= of.size() || number >= each || of.get(number) != number) {
                        return entry.getKey() + " has " + of;
                    }
                }
            }
            return numbers.size() + " in order";
        }

        synchronized long names() {
            return names.values().stream().flatMap(List::stream).distinct().count();
        }

        /** Whether each key was with one consumer only. */
        synchronized boolean apart() {
            return names.values().stream().allMatch(of -> of.size() == 1);
        }
    }

    private static void publish(String topic, int from, int to, BatcherBuilder batches, boolean batching)
            throws Exception {
        try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(batching)
                .batcherBuilder(batches).blockIfQueueFull(true).create()) {
            for (int number = from; number < to; number++) {
                for (int key = 0; key < KEYS; key++) {
                    producer.newMessage().key("key-" + key).value((number + " ").getBytes()).sendAsync();
                }
            }
            producer.flush();
        }
    }

    /** Note what a consumer gets, and acknowledge it, until so many are seen by all, or nothing comes. */
    private static void drain(Seen seen, int count, List<Consumer<byte[]>> consumers) throws Exception {
        long end = System.currentTimeMillis() + 30_000;
        while (seen.count < count && System.currentTimeMillis() < end) {
            for (Consumer<byte[]> consumer : consumers) {
                Message<byte[]> message = consumer.receive(5, TimeUnit.MILLISECONDS);
                if (message != null) {
                    seen.add(consumer.getConsumerName(), message);
                    consumer.acknowledge(message);
                }
            }
        }
    }

    /** Consumers join and leave while messages of all keys come: one each round. */
    private static void spread(String topic, BatcherBuilder batches, boolean batching) throws Exception {
        Seen seen = new Seen();
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        consumers.add(keyShared(topic, "c0").subscribe());
        int rounds = 8;
        int each = 20;
        for (int round = 0; round < rounds; round++) {
            publish(topic, round * each, (round + 1) * each, batches, batching);
            drain(seen, round * each * KEYS + each * KEYS / 2, consumers);
            if (round % 4 < 2) {
                consumers.add(keyShared(topic, "c" + (round + 1)).subscribe());
            } else {
                consumers.remove(0).close();
            }
        }
        drain(seen, rounds * each * KEYS, consumers);
        say(topic + " " + seen.order(rounds * each) + " at " + seen.names());
    }

    private static void chosen() throws Exception {
        Seen seen = new Seen();
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        Function<Range, KeySharedPolicy> sticky = range -> KeySharedPolicy.stickyHashRange().ranges(range);
        consumers.add(keyShared("chosen", "low").keySharedPolicy(sticky.apply(Range.of(0, 32_767))).subscribe());
        String refused = "nothing";
        try {
            keyShared("chosen", "other").keySharedPolicy(sticky.apply(Range.of(32_767, 40_000))).subscribe();
        } catch (PulsarClientException.ConsumerAssignException refusal) {
            refused = "an overlap";
        }
        consumers.add(keyShared("chosen", "high").keySharedPolicy(sticky.apply(Range.of(32_768, 65_535))).subscribe());
        publish("chosen", 0, 20, BatcherBuilder.KEY_BASED, true);
        drain(seen, 20 * KEYS, consumers);
        say("chosen " + seen.order(20) + " at " + seen.names() + " apart " + seen.apart() + " refused " + refused);
    }

    /** Two readers, each of half the keys. */
    private static void readers() throws Exception {
        publish("readers", 0, 20, BatcherBuilder.KEY_BASED, true);
        Seen seen = new Seen();
        for (Range range : new Range[] {Range.of(0, 32_767), Range.of(32_768, 65_535)}) {
            try (Reader<byte[]> reader = client.newReader().topic("readers").startMessageId(
                    org.apache.pulsar.client.api.MessageId.earliest).keyHashRange(range).create()) {
                while (reader.hasMessageAvailable()) {
                    Message<byte[]> message = reader.readNext(1, TimeUnit.SECONDS);
                    if (message == null) {
                        break;
                    }
                    seen.add(range.toString(), message);
                }
            }
        }
        say("readers " + seen.order(20) + " at " + seen.names() + " apart " + seen.apart());
    }

    /** What an aborted transaction acknowledged comes again, before what is new; of a committed one nothing does. */
    private static void transactions() throws Exception {
        publish("transactions", 0, 2, BatcherBuilder.DEFAULT, false);
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        consumers.add(keyShared("transactions", "c0").receiverQueueSize(1).subscribe());
        consumers.add(keyShared("transactions", "c1").receiverQueueSize(1).subscribe());
        int aborted = 0;
        int committed = 0;
        Seen seen = new Seen();
        long end = System.currentTimeMillis() + 30_000;
        while (committed < 2 * KEYS && System.currentTimeMillis() < end) {
            for (Consumer<byte[]> consumer : consumers) {
                Message<byte[]> message = consumer.receive(20, TimeUnit.MILLISECONDS);
                if (message == null) {
                    continue;
                }
                Transaction transaction = client.newTransaction().withTransactionTimeout(30, TimeUnit.SECONDS)
                        .build().get();
                consumer.acknowledgeAsync(message.getMessageId(), transaction).get();
                if (message.getRedeliveryCount() == 0) {
                    aborted++;
                    transaction.abort().get();
                } else {
                    committed++;
                    seen.add(consumer.getConsumerName(), message);
                    transaction.commit().get();
                }
            }
        }
        Message<byte[]> more = null;
        for (Consumer<byte[]> consumer : consumers) {
            more = more == null ? consumer.receive(300, TimeUnit.MILLISECONDS) : more;
        }
        say("transactions " + seen.order(2) + " aborted " + aborted + " then " + (more == null ? "nothing" : "more"));
    }

    /** Each message is in five chunks. */
    private static void chunks() throws Exception {
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            consumers.add(keyShared("chunks", "c" + number).subscribe());
        }
        try (Producer<byte[]> producer = client.newProducer().topic("chunks").enableBatching(false)
                .enableChunking(true).chunkMaxMessageSize(1_000).create()) {
            for (int number = 0; number < 4; number++) {
                for (int key = 0; key < KEYS; key++) {
                    String value = number + " " + "x".repeat(4_500);
                    producer.newMessage().key("key-" + key).value(value.getBytes()).sendAsync();
                }
            }
            producer.flush();
        }
        Seen seen = new Seen();
        drain(seen, 4 * KEYS, consumers);
        say("chunks " + seen.order(4) + " at " + seen.names() + " apart " + seen.apart());
    }

    /** The second half of each key's messages is delayed: they come in the order of their times. */
    private static void delays() throws Exception {
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        consumers.add(keyShared("delays", "c0").subscribe());
        consumers.add(keyShared("delays", "c1").subscribe());
        long due = System.currentTimeMillis() + 1_500;
        try (Producer<byte[]> producer = client.newProducer().topic("delays").enableBatching(false).create()) {
            for (int number : new int[] {3, 2, 0, 1}) {
                for (int key = 0; key < KEYS; key++) {
                    long later = number < 2 ? 0 : due + 300 * number;
                    producer.newMessage().key("key-" + key).value((number + " ").getBytes()).deliverAt(later)
                            .sendAsync();
                }
            }
            producer.flush();
        }
        Seen seen = new Seen();
        drain(seen, 2 * KEYS, consumers);
        boolean early = System.currentTimeMillis() >= due;
        drain(seen, 2 * KEYS + 1, consumers);
        early |= System.currentTimeMillis() < due + 600;
        drain(seen, 4 * KEYS, consumers);
        say("delays " + seen.order(4) + " apart " + seen.apart() + " early " + early);
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
