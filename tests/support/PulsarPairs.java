import com.google.protobuf.Any;
import com.google.protobuf.Option;
import com.google.protobuf.StringValue;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/**
 * Keys and values of schemas that only Java's client of Pulsar has.
 *
 *     java -cp 'libraries/*' PulsarPairs.java pulsar://127.0.0.1:6650
 */
public class PulsarPairs {
    public static class Key {
        public long id;
    }

    public static class Order {
        public String text;
        public int count;
    }

    public static void main(String[] words) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(words[0]).build()) {
            for (KeyValueEncodingType encoding : KeyValueEncodingType.values()) {
                Schema<KeyValue<Key, Order>> schema =
                        Schema.KeyValue(Schema.AVRO(Key.class), Schema.JSON(Order.class), encoding);
                String topic = "pairs-" + encoding.name().toLowerCase();
                try (Producer<KeyValue<Key, Order>> producer = client.newProducer(schema).topic(topic).create()) {
                    for (int number = 0; number < 3; number++) {
                        Key key = new Key();
                        key.id = number;
                        Order order = new Order();
                        order.text = "ü";
                        order.count = number;
                        producer.send(new KeyValue<>(key, number == 2 ? null : order));
                    }
                }
            }
            try (Producer<Option> producer =
                    client.newProducer(Schema.PROTOBUF_NATIVE(Option.class)).topic("options").create()) {
                producer.send(Option.newBuilder().setName("first").setValue(Any.pack(StringValue.of("a"))).build());
            }
        }
    }
}
