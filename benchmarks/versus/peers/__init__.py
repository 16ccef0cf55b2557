"""The brokers that are compared: how each is had, configured, started and ended."""
