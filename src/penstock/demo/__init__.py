"""The demo: real flights through three clients, one log and one Spark table."""
