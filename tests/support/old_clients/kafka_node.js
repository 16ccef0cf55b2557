// kafka-node 5.0.0: asks for versions, and then sends those that it knows.
const kafka = require("kafka-node");
const [what, address, topic, count] = process.argv.slice(2, 6);
const client = new kafka.KafkaClient({ kafkaHost: address });

function produce(codec, acks) {
  const codecs = { none: 0, gzip: 1, snappy: 2 };
  const producer = new kafka.Producer(client, { requireAcks: Number(acks) });
  producer.on("error", fail);
  const messages = [];
  for (let n = 0; n < Number(count); n++) messages.push(`value ${n}`);
  messages.push(new kafka.KeyedMessage("key", "with a key"));
  client.refreshMetadata([topic], () => {
    producer.send([{ topic, partition: 0, messages, attributes: codecs[codec] }], (error) => {
      if (error) fail(error);
      // Of acks 0 nothing more is heard.
      setTimeout(() => client.close(() => process.exit(0)), 1000);
    });
  });
}

function consume(group, bytes) {
  const consumer = new kafka.Consumer(client, [{ topic, partition: 0, offset: 0 }], {
    groupId: group, autoCommit: false, fromOffset: true, encoding: "utf8", keyEncoding: "utf8",
    fetchMaxBytes: Number(bytes),
  });
  let seen = 0;
  consumer.on("error", fail);
  consumer.on("message", (found) => {
    console.log(JSON.stringify([found.offset, found.key || null, found.value]));
    if (++seen === Number(count)) consumer.commit((error) => (error ? fail(error) : process.exit(0)));
  });
}

function fail(error) { console.error(error); process.exit(1); }
client.on("ready", () => (what === "produce" ? produce : consume)(...process.argv.slice(6)));
client.on("error", fail);
