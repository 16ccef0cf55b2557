"""Topics as Spark tables."""
