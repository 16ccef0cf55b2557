import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MultiplierRedeliveryBackoff;

/**
 * What Java's client of Pulsar does with messages that come later, one thing after another.
 *
 *     java -cp 'libraries/*' PulsarDelays.java pulsar://127.0.0.1:6650
 *
 * It prints what came of each, as "WORD RESULT".
 */
public class PulsarDelays {
    private static PulsarClient client;

    public static void main(String[] words) throws Exception {
        client = PulsarClient.builder().serviceUrl(words[0]).operationTimeout(30, TimeUnit.SECONDS).build();
        delays();
        chunks();
        retries();
        backoff();
        client.close();
    }

    private static Consumer<byte[]> shared(String topic) throws Exception {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Shared)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    /** In which order they come, and whether one was early or counted as delivered before. */
    private static void delays() throws Exception {
        Producer<byte[]> producer = client.newProducer().topic("delays").create();
        long began = System.currentTimeMillis();
        producer.newMessage().value("1200".getBytes()).deliverAt(began + 1200).send();
        producer.newMessage().value("700".getBytes()).deliverAfter(700, TimeUnit.MILLISECONDS).send();
        producer.newMessage().value("0".getBytes()).send();
        Consumer<byte[]> consumer = shared("delays");
        List<String> order = new ArrayList<>();
        for (int count = 0; count < 3; count++) {
            Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
            String delay = new String(message.getData());
            boolean early = System.currentTimeMillis() < began + Long.parseLong(delay);
            order.add(delay + (early ? " early" : "") + (message.getRedeliveryCount() > 0 ? " again" : ""));
            consumer.acknowledge(message);
        }
        say("delays " + order);
    }

    private static void chunks() throws Exception {
        Producer<byte[]> producer = client.newProducer().topic("chunks").enableBatching(false).enableChunking(true)
                .chunkMaxMessageSize(1000).create();
        Consumer<byte[]> consumer = shared("chunks");
        long began = System.currentTimeMillis();
        producer.newMessage().value(new byte[10_000]).deliverAt(began + 500).send();
        Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
        say("chunks " + message.getData().length + " " + (System.currentTimeMillis() >= began + 500));
    }

    /** A message that is put off twice comes from the topic of retries, and then is a dead letter. */
    private static void retries() throws Exception {
        Consumer<byte[]> dead = shared("retries-s-DLQ");
        Consumer<byte[]> consumer = client.newConsumer().topic("retries").subscriptionName("s")
                .subscriptionType(SubscriptionType.Shared).enableRetry(true)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2)
                        .retryLetterTopic("retries-s-RETRY").deadLetterTopic("retries-s-DLQ").build())
                .subscribe();
        client.newProducer().topic("retries").create().send("bad".getBytes());
        List<String> seen = new ArrayList<>();
        long began = 0;
        for (int count = 0; count < 3; count++) {
            Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
            boolean early = count > 0 && System.currentTimeMillis() < began + 500;
            String topic = message.getTopicName().replaceAll(".*/", "");
            seen.add(topic + " " + message.getProperty("RECONSUMETIMES") + (early ? " early" : ""));
            began = System.currentTimeMillis();
            consumer.reconsumeLater(message, 500, TimeUnit.MILLISECONDS);
        }
        Message<byte[]> letter = dead.receive(30, TimeUnit.SECONDS);
        say("retries " + seen + " dead " + new String(letter.getData()));
    }

    private static void backoff() throws Exception {
        Consumer<byte[]> dead = shared("backoff-dead");
        Consumer<byte[]> consumer = client.newConsumer().topic("backoff").subscriptionName("s")
                .subscriptionType(SubscriptionType.Shared)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .negativeAckRedeliveryBackoff(MultiplierRedeliveryBackoff.builder()
                        .minDelayMs(100).maxDelayMs(400).multiplier(2).build())
                .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2).deadLetterTopic("backoff-dead").build())
                .subscribe();
        client.newProducer().topic("backoff").create().send("bad".getBytes());
        List<Integer> counts = new ArrayList<>();
        for (int count = 0; count < 3; count++) {
            Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
            counts.add(message.getRedeliveryCount());
            consumer.negativeAcknowledge(message);
        }
        Message<byte[]> letter = null;
        long end = System.currentTimeMillis() + 30_000;
        while (letter == null && System.currentTimeMillis() < end) {
            consumer.receive(100, TimeUnit.MILLISECONDS);
            letter = dead.receive(100, TimeUnit.MILLISECONDS);
        }
        say("backoff " + counts + " dead " + (letter == null ? "nothing" : new String(letter.getData())));
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
