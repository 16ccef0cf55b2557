"""What the suite asks of `kafka-topics.sh`: create, alter and delete a topic."""

from __future__ import annotations

import argparse

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

ANSWER_SECONDS = 30


def main() -> None:
    words = _parser().parse_args()
    admin = AdminClient({"bootstrap.servers": words.bootstrap_server})
    if words.create:
        settings = dict(setting.split("=", 1) for setting in words.config)
        made = NewTopic(words.topic, words.partitions, words.replication_factor, config=settings)
        answers = admin.create_topics([made])
    elif words.alter:
        answers = admin.create_partitions([NewPartitions(words.topic, words.partitions)])
    else:
        answers = admin.delete_topics([words.topic])
    for answer in answers.values():
        answer.result(ANSWER_SECONDS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--replication-factor", type=int, default=1)
    parser.add_argument("--config", action="append", default=[])
    verb = parser.add_mutually_exclusive_group(required=True)
    for flag in ("--create", "--alter", "--delete"):
        verb.add_argument(flag, action="store_true")
    return parser


if __name__ == "__main__":
    main()
