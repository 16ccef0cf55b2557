import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TableView;

/**
 * What Java's client of Pulsar reads of a topic: as a table, compacted, and in a shared subscription
 * that acknowledges each message, and then gets what comes next.
 *
 *     java -cp 'libraries/*' PulsarCompacted.java pulsar://127.0.0.1:6650 TOPIC
 */
public class PulsarCompacted {
    public static void main(String[] words) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(words[0]).operationTimeout(30, TimeUnit.SECONDS).build();
        String topic = words[1];
        TableView<byte[]> view = client.newTableView(Schema.BYTES).topic(topic).create();
        TreeSet<String> table = new TreeSet<>();
        for (Map.Entry<String, byte[]> each : view.entrySet()) {
            table.add(each.getKey() + "=" + new String(each.getValue()));
        }
        table.forEach(each -> System.out.println("table " + each));
        view.close();
        int count = 0;
        try (Reader<byte[]> reader = client.newReader().topic(topic).startMessageId(MessageId.earliest).readCompacted(true).create()) {
            while (reader.hasMessageAvailable()) {
                say("reader", reader.readNext(30, TimeUnit.SECONDS));
                count++;
            }
        }
        try (Consumer<byte[]> consumer = shared(client, topic)) {
            for (int number = 0; number < count; number++) {
                Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
                say("shared", message);
                consumer.acknowledge(message);
            }
        }
        try (Producer<byte[]> producer = client.newProducer().topic(topic).create()) {
            producer.newMessage().key("next").value("next".getBytes()).send();
        }
        try (Consumer<byte[]> consumer = shared(client, topic)) {
            say("again", consumer.receive(30, TimeUnit.SECONDS));
        }
        client.close();
    }

    private static Consumer<byte[]> shared(PulsarClient client, String topic) throws Exception {
        return client.newConsumer().topic(topic).subscriptionName("java").subscriptionType(SubscriptionType.Shared)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    private static void say(String word, Message<byte[]> message) {
        System.out.println(word + " " + message.getKey() + "=" + new String(message.getData()));
    }
}
