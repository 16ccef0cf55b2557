// no-kafka 3.4.4: sends the versions that it knows, whatever is offered.
const Kafka = require("no-kafka");
const [what, address, topic, count] = process.argv.slice(2, 6);
const quiet = { logger: { logLevel: 0 } };

async function produce(codec, acks) {
  const codecs = { none: Kafka.COMPRESSION_NONE, gzip: Kafka.COMPRESSION_GZIP, snappy: Kafka.COMPRESSION_SNAPPY };
  const producer = new Kafka.Producer({
    connectionString: address, requiredAcks: Number(acks), codec: codecs[codec], ...quiet,
  });
  await producer.init();
  const messages = [];
  for (let n = 0; n < Number(count); n++) {
    messages.push({ topic, partition: 0, message: { value: `value ${n}` } });
  }
  messages.push({ topic, partition: 0, message: { key: "key", value: "with a key" } });
  const results = await producer.send(messages);
  for (const result of results || []) if (result.error) throw result.error;
  // Of acks 0 nothing more is heard.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  await producer.end();
}

async function consume(group, bytes) {
  const consumer = new Kafka.GroupConsumer({
    connectionString: address, groupId: group, maxBytes: Number(bytes), startingOffset: Kafka.EARLIEST_OFFSET,
    idleTimeout: 50, ...quiet,
  });
  let seen = 0;
  await new Promise((resolve, reject) => {
    const handler = async (messages, topicName, partition) => {
      for (const found of messages) {
        const key = found.message.key ? found.message.key.toString() : null;
        console.log(JSON.stringify([found.offset, key, found.message.value.toString()]));
        await consumer.commitOffset({ topic: topicName, partition, offset: found.offset });
        if (++seen === Number(count)) resolve();
      }
    };
    consumer.init([{ subscriptions: [topic], handler }]).catch(reject);
  });
  await consumer.end();
}

(what === "produce" ? produce : consume)(...process.argv.slice(6)).then(
  () => process.exit(0), (error) => { console.error(error); process.exit(1); });
