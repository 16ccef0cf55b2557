"""Sockets: listeners, connections, back-pressure, limits, shutdown."""
