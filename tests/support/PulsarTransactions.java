import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * Transactions of Java's client of Pulsar, which is the one that has them, one thing after another.
 *
 *     java -cp 'libraries/*' PulsarTransactions.java pulsar://127.0.0.1:6650
 *
 * It prints what came of each, as "WORD RESULT". At "kill" it waits for a line: the broker was killed
 * and is there again. With one more word it has a few transactions whose frames can be recorded.
 */
public class PulsarTransactions {
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));
    private static PulsarClient client;

    public static void main(String[] words) throws Exception {
        client = PulsarClient.builder().serviceUrl(words[0]).enableTransaction(true)
                .operationTimeout(30, TimeUnit.SECONDS).build();
        if (words.length > 1) {
            toBeRecorded();
            client.close();
            return;
        }
        committed();
        aborted();
        partly();
        conflict();
        tooLate();
        sharedAcknowledgements();
        cumulativeAcknowledgements();
        partsOfBatches();
        crash();
        client.close();
    }

    /** One of everything that a transaction may have, in an order that is always the same. */
    private static void toBeRecorded() throws Exception {
        Producer<byte[]> input = producer("input");
        Consumer<byte[]> shared = consumer("input", SubscriptionType.Shared);
        Producer<byte[]> output = producer("output");
        Consumer<byte[]> exclusive = consumer("output", SubscriptionType.Exclusive);
        for (boolean commits : new boolean[] {false, true}) {
            input.newMessage().value(bytes(7)).send();
            Message<byte[]> message = shared.receive(30, TimeUnit.SECONDS);
            Transaction transaction = begin(60);
            output.newMessage(transaction).value(bytes(8)).send();
            shared.acknowledgeAsync(message.getMessageId(), transaction).get();
            (commits ? transaction.commit() : transaction.abort()).get();
        }
        MessageId last = messages(exclusive, 1, 30_000).get(0).getMessageId();
        Transaction cumulative = begin(60);
        exclusive.acknowledgeCumulativeAsync(last, cumulative).get();
        cumulative.commit().get();
    }

    private static void committed() throws Exception {
        Consumer<byte[]> first = consumer("a", SubscriptionType.Exclusive);
        Consumer<byte[]> second = consumer("b", SubscriptionType.Exclusive);
        Producer<byte[]> toFirst = producer("a");
        Producer<byte[]> toSecond = producer("b");
        Transaction transaction = begin(60);
        for (int number = 0; number < 5; number++) {
            toFirst.newMessage(transaction).value(bytes(number)).sendAsync();
            toSecond.newMessage(transaction).value(bytes(number)).sendAsync();
        }
        toFirst.flush();
        toSecond.flush();
        say("unseen " + (receive(first, 1, 300).isEmpty() && receive(second, 1, 10).isEmpty()));
        transaction.commit().get();
        say("committed " + receive(first, 5) + " " + receive(second, 5) + " " + transaction.getState());
    }

    private static void aborted() throws Exception {
        Producer<byte[]> producer = producer("aborted");
        Transaction transaction = begin(60);
        producer.newMessage(transaction).value(bytes(1)).send();
        producer.newMessage(transaction).value(bytes(2)).send();
        transaction.abort().get();
        producer.newMessage().value(bytes(3)).send();
        Consumer<byte[]> consumer = consumer("aborted", SubscriptionType.Exclusive);
        say("aborted " + receive(consumer, 1) + " " + receive(consumer, 1, 300));
    }

    /** What was written and acknowledged together takes effect together, or not at all. */
    private static void partly() throws Exception {
        Producer<byte[]> input = producer("input");
        Consumer<byte[]> consumer = consumer("input", SubscriptionType.Shared);
        Producer<byte[]> output = producer("output");
        Consumer<byte[]> result = consumer("output", SubscriptionType.Exclusive);
        input.newMessage().value(bytes(7)).send();
        List<String> seen = new ArrayList<>();
        for (boolean commits : new boolean[] {false, true}) {
            Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
            Transaction transaction = begin(60);
            output.newMessage(transaction).value(bytes(commits ? 8 : 9)).send();
            consumer.acknowledgeAsync(message.getMessageId(), transaction).get();
            (commits ? transaction.commit() : transaction.abort()).get();
            seen.add(text(message));
        }
        say("transformed " + seen + " " + receive(result, 1) + " " + receive(result, 1, 300)
                + " " + receive(consumer, 1, 300));
    }

    private static void conflict() throws Exception {
        Producer<byte[]> producer = producer("conflict");
        Consumer<byte[]> consumer = consumer("conflict", SubscriptionType.Shared);
        producer.newMessage().value(bytes(1)).send();
        Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
        Transaction first = begin(60);
        Transaction second = begin(60);
        consumer.acknowledgeAsync(message.getMessageId(), first).get();
        String refused = error(() -> consumer.acknowledgeAsync(message.getMessageId(), second).get());
        second.abort().get();
        first.commit().get();
        Transaction third = begin(60);
        String late = error(() -> consumer.acknowledgeAsync(message.getMessageId(), third).get());
        third.abort().get();
        say("conflict " + refused + " " + late);
    }

    private static void tooLate() throws Exception {
        Producer<byte[]> producer = producer("late");
        Consumer<byte[]> consumer = consumer("late", SubscriptionType.Exclusive);
        Transaction transaction = begin(1);
        producer.newMessage(transaction).value(bytes(1)).send();
        producer.newMessage().value(bytes(2)).send();
        List<String> seen = receive(consumer, 1);
        Thread.sleep(1500);  // The client counts by its own clock.
        say("late " + seen + " " + error(() -> transaction.commit().get()));
    }

    private static void sharedAcknowledgements() throws Exception {
        Producer<byte[]> producer = producer("shared");
        Consumer<byte[]> consumer = consumer("shared", SubscriptionType.Shared);
        for (int number = 0; number < 4; number++) {
            producer.newMessage().value(bytes(number)).send();
        }
        List<Message<byte[]>> messages = messages(consumer, 4, 30_000);
        Transaction transaction = begin(60);
        consumer.acknowledgeAsync(messages.get(1).getMessageId(), transaction).get();
        consumer.acknowledgeAsync(messages.get(2).getMessageId(), transaction).get();
        consumer.redeliverUnacknowledgedMessages();
        List<String> others = receive(consumer, 2);
        List<String> pending = receive(consumer, 1, 300);
        transaction.abort().get();
        say("shared " + others + " " + pending + " " + receive(consumer, 2));
    }

    private static void cumulativeAcknowledgements() throws Exception {
        Producer<byte[]> producer = producer("cumulative");
        Consumer<byte[]> consumer = consumer("cumulative", SubscriptionType.Exclusive);
        for (int number = 0; number < 6; number++) {
            producer.newMessage().value(bytes(number)).send();
        }
        List<Message<byte[]>> messages = messages(consumer, 6, 30_000);
        Transaction first = begin(60);
        consumer.acknowledgeCumulativeAsync(messages.get(3).getMessageId(), first).get();
        Transaction second = begin(60);
        MessageId later = messages.get(4).getMessageId();
        String refused = error(() -> consumer.acknowledgeCumulativeAsync(later, second).get());
        second.abort().get();
        first.abort().get();
        consumer.redeliverUnacknowledgedMessages();
        List<Message<byte[]>> again = messages(consumer, 6, 30_000);
        Transaction third = begin(60);
        consumer.acknowledgeCumulativeAsync(again.get(3).getMessageId(), third).get();
        third.commit().get();
        consumer.redeliverUnacknowledgedMessages();
        say("cumulative " + refused + " " + texts(again) + " " + receive(consumer, 2));
    }

    private static void partsOfBatches() throws Exception {
        Producer<byte[]> producer = client.newProducer().topic("batched").enableBatching(true)
                .batcherBuilder(BatcherBuilder.DEFAULT).batchingMaxPublishDelay(1, TimeUnit.MINUTES)
                .sendTimeout(0, TimeUnit.SECONDS).create();
        Consumer<byte[]> consumer = client.newConsumer().topic("batched").subscriptionName("s")
                .subscriptionType(SubscriptionType.Shared).enableBatchIndexAcknowledgment(true)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        for (int number = 0; number < 5; number++) {
            producer.newMessage().value(bytes(number)).sendAsync();
        }
        producer.flush();
        List<Message<byte[]>> messages = messages(consumer, 5, 30_000);
        Transaction first = begin(60);
        Transaction second = begin(60);
        consumer.acknowledgeAsync(messages.get(1).getMessageId(), first).get();
        consumer.acknowledgeAsync(messages.get(3).getMessageId(), second).get();
        MessageId taken = messages.get(3).getMessageId();
        String refused = error(() -> consumer.acknowledgeAsync(taken, first).get());
        second.commit().get();
        first.abort().get();
        consumer.redeliverUnacknowledgedMessages();
        TreeMap<String, Boolean> left = new TreeMap<>();
        for (String each : receive(consumer, 8, 1000)) {
            left.put(each, true);
        }
        say("batch " + refused + " " + left.keySet());
    }

    /** Moves messages from one topic to another while the broker is killed. */
    private static void crash() throws Exception {
        int count = 200;
        Producer<byte[]> input = producer("moved-from");
        for (int number = 0; number < count; number++) {
            input.newMessage().value(bytes(number)).sendAsync();
        }
        input.flush();
        Consumer<byte[]> consumer = consumer("moved-from", SubscriptionType.Shared);
        Producer<byte[]> output = producer("moved-to");
        int moved = 0;
        int failed = 0;
        int nextKill = 20;
        Message<byte[]> message;
        while ((message = consumer.receive(moved < count ? 30_000 : 500, TimeUnit.MILLISECONDS)) != null) {
            try {
                Transaction transaction = begin(3);
                output.newMessage(transaction).value(message.getData()).sendAsync();
                var acknowledged = consumer.acknowledgeAsync(message.getMessageId(), transaction);
                if (moved == nextKill) {
                    nextKill += 60;
                    wait("kill");
                }
                acknowledged.get();
                transaction.commit().get();
                moved++;
            } catch (Exception error) {
                failed++;
                consumer.negativeAcknowledge(message);
            }
        }
        Consumer<byte[]> result = consumer("moved-to", SubscriptionType.Exclusive);
        Map<String, Integer> times = new TreeMap<>();
        for (String each : receive(result, count + 100, 5000)) {
            times.merge(each, 1, Integer::sum);
        }
        boolean once = times.size() == count && times.values().stream().allMatch(each -> each == 1);
        System.err.println("moved " + moved + ", failed " + failed + ", found " + times);
        say("moved once " + once);
    }

    private static Producer<byte[]> producer(String topic) throws Exception {
        return client.newProducer().topic(topic).enableBatching(false).sendTimeout(0, TimeUnit.SECONDS).create();
    }

    private static Consumer<byte[]> consumer(String topic, SubscriptionType type) throws Exception {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type)
                .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    private static Transaction begin(int seconds) throws Exception {
        return client.newTransaction().withTransactionTimeout(seconds, TimeUnit.SECONDS).build().get();
    }

    private static List<Message<byte[]>> messages(Consumer<byte[]> consumer, int count, int milliseconds)
            throws Exception {
        List<Message<byte[]>> found = new ArrayList<>();
        Message<byte[]> message;
        while (found.size() < count && (message = consumer.receive(milliseconds, TimeUnit.MILLISECONDS)) != null) {
            found.add(message);
        }
        return found;
    }

    private static List<String> receive(Consumer<byte[]> consumer, int count, int milliseconds) throws Exception {
        return texts(messages(consumer, count, milliseconds));
    }

    private static List<String> receive(Consumer<byte[]> consumer, int count) throws Exception {
        return receive(consumer, count, 30_000);
    }

    private static List<String> texts(List<Message<byte[]>> messages) {
        return messages.stream().map(PulsarTransactions::text).toList();
    }

    private static String text(Message<byte[]> message) {
        return new String(message.getData());
    }

    private static byte[] bytes(int number) {
        return Integer.toString(number).getBytes();
    }

    private interface Attempt {
        Object make() throws Exception;
    }

    private static String error(Attempt attempt) {
        try {
            attempt.make();
            return "nothing";
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        } catch (Exception error) {
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
