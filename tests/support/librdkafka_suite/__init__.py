"""librdkafka's own tests, run against Penstock: `make interop-librdkafka`."""
