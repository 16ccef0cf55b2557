"""A client of Pulsar's protocol, of as much as pipelines need."""
