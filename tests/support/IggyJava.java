import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.iggy.client.blocking.tcp.IggyTcpClient;
import org.apache.iggy.consumergroup.Consumer;
import org.apache.iggy.identifier.ConsumerId;
import org.apache.iggy.identifier.StreamId;
import org.apache.iggy.identifier.TopicId;
import org.apache.iggy.message.HeaderKey;
import org.apache.iggy.message.HeaderValue;
import org.apache.iggy.message.Message;
import org.apache.iggy.message.Partitioning;
import org.apache.iggy.message.PollingStrategy;
import org.apache.iggy.topic.CompressionAlgorithm;

/** Does with a broker what Java's client of apache-iggy 0.8 can. Called as `IggyJava HOST PORT`. */
public final class IggyJava {
    private static final StreamId STREAM = StreamId.of("java");
    private static final TopicId TOPIC = TopicId.of("orders");
    private static final ConsumerId GROUP = ConsumerId.of("readers");
    private static final Optional<Long> FIRST = Optional.of(0L);

    private interface Call {
        void run() throws Exception;
    }

    public static void main(String[] words) throws Exception {
        var client = IggyTcpClient.builder()
            .host(words[0])
            .port(Integer.parseInt(words[1]))
            .credentials("iggy", "iggy")
            .buildAndLogin();
        manage(client);
        messages(client);
        groups(client);
        rest(client);
        System.exit(0); // Its threads would keep it alive.
    }

    private static void manage(IggyTcpClient client) {
        say("stream", client.streams().createStream("java").name());
        say("twice", refusal(() -> client.streams().createStream("java")));
        var topic = client.topics().createTopic(STREAM, 2L, CompressionAlgorithm.Gzip,
            BigInteger.ZERO, BigInteger.ZERO, Optional.empty(), "orders");
        say("topic", topic.name() + " " + topic.partitionsCount() + " " + topic.compressionAlgorithm());
        client.partitions().createPartitions(STREAM, TOPIC, 2L);
        client.partitions().deletePartitions(STREAM, TOPIC, 1L);
        say("partitions", client.topics().getTopic(STREAM, TOPIC).orElseThrow().partitionsCount());
        say("too many", refusal(() -> client.partitions().deletePartitions(STREAM, TOPIC, 9L)));
        say("missing", client.streams().getStream(StreamId.of("missing")).isPresent());
        say("topics", client.topics().getTopics(STREAM).size());
    }

    private static void messages(IggyTcpClient client) {
        var header = Map.of(HeaderKey.fromString("colour"), HeaderValue.fromString("green"));
        client.messages().sendMessages(STREAM, TOPIC, Partitioning.partitionId(0L),
            List.of(Message.of("a", header), Message.of("b"), Message.of("c")));
        client.messages().sendMessages(STREAM, TOPIC, Partitioning.balanced(), List.of(Message.of("d")));
        client.messages().sendMessages(STREAM, TOPIC, Partitioning.messagesKey("key-1"), List.of(Message.of("e")));
        for (var strategy : List.of(PollingStrategy.first(), PollingStrategy.last(),
                PollingStrategy.offset(BigInteger.ONE), PollingStrategy.next(), PollingStrategy.next())) {
            var polled = client.messages().pollMessages(STREAM, TOPIC, FIRST, Consumer.of(7L), strategy, 2L, true);
            say("poll", polled.messages().stream()
                .map(each -> each.header().offset() + "=" + new String(each.payload())
                    + each.userHeaders().values().stream().map(value -> "/" + new String(value.value()))
                        .collect(Collectors.joining()))
                .collect(Collectors.joining(" ")));
        }
        client.consumerOffsets().storeConsumerOffset(STREAM, TOPIC, FIRST, Consumer.of(7L), BigInteger.ONE);
        say("offset", client.consumerOffsets().getConsumerOffset(STREAM, TOPIC, FIRST, Consumer.of(7L))
            .orElseThrow().storedOffset());
        say("no offset", client.consumerOffsets().getConsumerOffset(STREAM, TOPIC, FIRST, Consumer.of(8L)).isPresent());
    }

    private static void groups(IggyTcpClient client) {
        client.consumerGroups().createConsumerGroup(STREAM, TOPIC, "readers");
        client.consumerGroups().joinConsumerGroup(STREAM, TOPIC, GROUP);
        var read = new TreeSet<String>();
        for (int polls = 0; polls < 6; polls++) {
            client.messages().pollMessages(STREAM, TOPIC, Optional.empty(), Consumer.group(GROUP),
                    PollingStrategy.next(), 10L, true)
                .messages().forEach(each -> read.add(new String(each.payload())));
        }
        say("group", String.join(" ", read));
        say("members", client.consumerGroups().getConsumerGroup(STREAM, TOPIC, GROUP).orElseThrow().membersCount());
        client.consumerGroups().leaveConsumerGroup(STREAM, TOPIC, GROUP);
        say("left", refusal(() -> client.consumerGroups().leaveConsumerGroup(STREAM, TOPIC, GROUP)));
        client.consumerGroups().deleteConsumerGroup(STREAM, TOPIC, GROUP);
        say("groups", client.consumerGroups().getConsumerGroups(STREAM, TOPIC).size());
    }

    private static void rest(IggyTcpClient client) {
        say("stats", client.system().getStats().messagesCount().compareTo(BigInteger.ZERO) > 0);
        say("me", client.system().getClients().stream()
            .anyMatch(each -> each.clientId().equals(client.system().getMe().clientId())));
        client.topics().updateTopic(STREAM, TOPIC, CompressionAlgorithm.None, BigInteger.ZERO,
            BigInteger.ZERO, Optional.empty(), "bills");
        say("renamed", client.topics().getTopic(STREAM, TopicId.of("bills")).orElseThrow().name());
        client.topics().deleteTopic(STREAM, TopicId.of("bills"));
        client.streams().deleteStream(STREAM);
        say("gone", client.streams().getStream(STREAM).isPresent());
    }

    private static String refusal(Call call) {
        try {
            call.run();
            return "none";
        } catch (Exception error) {
            return error.getClass().getSimpleName();
        }
    }

    private static void say(String what, Object seen) {
        System.out.println(what + ": " + seen);
    }
}
