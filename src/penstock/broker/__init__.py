"""What all protocols share: topics, partitions, producers, groups, subscriptions."""
