//! What a client of the crate `iggy` 0.0.60 (August 2023) does with a broker; a line for each thing
//! that it saw. The argument is the broker's address.

use std::collections::HashMap;
use std::str::FromStr;

use bytes::Bytes;
use iggy::client::{
    Client, ConsumerGroupClient, ConsumerOffsetClient, MessageClient, PartitionClient,
    StreamClient, SystemClient, TopicClient,
};
use iggy::consumer::Consumer;
use iggy::consumer_groups::{
    create_consumer_group::CreateConsumerGroup, get_consumer_group::GetConsumerGroup,
    join_consumer_group::JoinConsumerGroup, leave_consumer_group::LeaveConsumerGroup,
};
use iggy::consumer_offsets::{
    get_consumer_offset::GetConsumerOffset, store_consumer_offset::StoreConsumerOffset,
};
use iggy::error::Error;
use iggy::identifier::Identifier;
use iggy::messages::poll_messages::{PollMessages, PollingStrategy};
use iggy::messages::send_messages::{Message, Partitioning, SendMessages};
use iggy::models::header::{HeaderKey, HeaderValue};
use iggy::partitions::create_partitions::CreatePartitions;
use iggy::streams::{
    create_stream::CreateStream, delete_stream::DeleteStream, get_stream::GetStream,
    get_streams::GetStreams,
};
use iggy::system::{get_clients::GetClients, get_me::GetMe, get_stats::GetStats, ping::Ping};
use iggy::tcp::client::TcpClient;
use iggy::topics::{create_topic::CreateTopic, get_topic::GetTopic, get_topics::GetTopics};

const STREAM: u32 = 41;
const TOPIC: u32 = 2;

fn stream() -> Identifier {
    Identifier::numeric(STREAM).unwrap()
}

fn topic() -> Identifier {
    Identifier::numeric(TOPIC).unwrap()
}

async fn send(client: &TcpClient, to: Partitioning, payloads: &[&str]) -> Result<(), Error> {
    let key = HeaderKey::new("colour")?;
    let headers = HashMap::from([(key, HeaderValue::from_str("green")?)]);
    let messages = payloads
        .iter()
        .map(|payload| {
            Message::new(None, Bytes::from(payload.to_string()), Some(headers.clone()))
        })
        .collect();
    let mut command = SendMessages {
        stream_id: stream(),
        topic_id: topic(),
        partitioning: to,
        messages,
    };
    client.send_messages(&mut command).await
}

async fn poll(
    client: &TcpClient,
    consumer: Consumer,
    partition: u32,
    strategy: PollingStrategy,
) -> Result<(), Error> {
    let command = PollMessages {
        consumer,
        stream_id: stream(),
        topic_id: topic(),
        partition_id: Some(partition),
        strategy,
        count: 3,
        auto_commit: true,
    };
    let polled = client.poll_messages(&command).await?;
    let messages: Vec<String> = polled
        .messages
        .iter()
        .map(|message| {
            let headers = message.headers.as_ref().unwrap();
            let colour = headers[&HeaderKey::new("colour").unwrap()].as_str().unwrap();
            let payload = String::from_utf8(message.payload.to_vec()).unwrap();
            assert!(message.id > 0 && message.timestamp > 0);
            format!("{}={}/{}", message.offset, payload, colour)
        })
        .collect();
    println!(
        "poll {} {} {}",
        polled.partition_id,
        polled.current_offset,
        messages.join(" ")
    );
    Ok(())
}

async fn make(client: &TcpClient) -> Result<(), Error> {
    let create = CreateStream {
        stream_id: STREAM,
        name: "Early Iggy".to_string(),
    };
    client.create_stream(&create).await?;
    println!("again {:?}", client.create_stream(&create).await.map_err(|error| error.as_code()));
    client
        .create_topic(&CreateTopic {
            stream_id: stream(),
            topic_id: TOPIC,
            partitions_count: 2,
            message_expiry: None,
            name: "Orders".to_string(),
        })
        .await?;
    client
        .create_partitions(&CreatePartitions {
            stream_id: stream(),
            topic_id: topic(),
            partitions_count: 1,
        })
        .await?;
    let made = client.get_stream(&GetStream { stream_id: stream() }).await?;
    println!("stream {} {} {}", made.id, made.name, made.topics.len());
    let made = client
        .get_topic(&GetTopic { stream_id: stream(), topic_id: topic() })
        .await?;
    let ids: Vec<u32> = made.partitions.iter().map(|partition| partition.id).collect();
    println!("topic {} {} {:?} {:?}", made.id, made.name, made.message_expiry, ids);
    let listed = client.get_topics(&GetTopics { stream_id: stream() }).await?;
    println!("topics {}", listed.len());
    let streams = client.get_streams(&GetStreams {}).await?;
    println!("listed {}", streams.iter().any(|stream| stream.id == STREAM));
    Ok(())
}

async fn exchange(client: &TcpClient) -> Result<(), Error> {
    send(client, Partitioning::partition_id(1), &["a", "b", "c", "d"]).await?;
    send(client, Partitioning::messages_key_u32(1), &["key"]).await?;
    for strategy in [
        PollingStrategy::first(),
        PollingStrategy::last(),
        PollingStrategy::offset(2),
        PollingStrategy::timestamp(1),
        PollingStrategy::next(),
    ] {
        poll(client, Consumer::new(7), 1, strategy).await?;
    }
    let stored = |partition_id| GetConsumerOffset {
        consumer: Consumer::new(7),
        stream_id: stream(),
        topic_id: topic(),
        partition_id: Some(partition_id),
    };
    let offset = client.get_consumer_offset(&stored(1)).await?;
    println!("offset {} {}", offset.current_offset, offset.stored_offset);
    let offset = client.get_consumer_offset(&stored(3)).await?;
    println!("offset {} {}", offset.current_offset, offset.stored_offset);
    let store = StoreConsumerOffset {
        consumer: Consumer::new(7),
        stream_id: stream(),
        topic_id: topic(),
        partition_id: Some(1),
        offset: 0,
    };
    client.store_consumer_offset(&store).await?;
    poll(client, Consumer::new(7), 1, PollingStrategy::next()).await
}

async fn read_as_group(client: &TcpClient) -> Result<(), Error> {
    let group = 5;
    client
        .create_consumer_group(&CreateConsumerGroup {
            stream_id: stream(),
            topic_id: topic(),
            consumer_group_id: group,
        })
        .await?;
    client
        .join_consumer_group(&JoinConsumerGroup {
            stream_id: stream(),
            topic_id: topic(),
            consumer_group_id: group,
        })
        .await?;
    let found = client
        .get_consumer_group(&GetConsumerGroup {
            stream_id: stream(),
            topic_id: topic(),
            consumer_group_id: group,
        })
        .await?;
    let me = client.get_me(&GetMe {}).await?;
    println!(
        "group {} {:?} {}",
        found.id,
        found.members[0].partitions,
        found.members[0].id == me.id
    );
    let place = &me.consumer_groups[0];
    println!("me {} {} {}", place.stream_id, place.topic_id, place.consumer_group_id);
    for _ in 0..3 {
        poll(client, Consumer::group(group), 3, PollingStrategy::next()).await?;
    }
    client
        .leave_consumer_group(&LeaveConsumerGroup {
            stream_id: stream(),
            topic_id: topic(),
            consumer_group_id: group,
        })
        .await
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1).expect("an address");
    let mut client = TcpClient::new(&address)?;
    client.connect().await?;
    client.ping(&Ping {}).await?;
    make(&client).await?;
    exchange(&client).await?;
    read_as_group(&client).await?;
    let stats = client.get_stats(&GetStats {}).await?;
    println!("stats {} {}", stats.process_id > 0, stats.messages_count >= 5);
    println!("clients {}", client.get_clients(&GetClients {}).await?.len() > 0);
    client.delete_stream(&DeleteStream { stream_id: stream() }).await?;
    let gone = client.get_stream(&GetStream { stream_id: stream() }).await;
    println!("gone {:?}", gone.map(|_| ()).map_err(|error| error.as_code()));
    Ok(())
}
