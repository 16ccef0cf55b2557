"""Reading topics as rows: options, positions, the plan of a read, and what a task does."""
