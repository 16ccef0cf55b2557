"""Jobs that run on the source and the tables: topics kept as tables."""
