"""A table and what its topics got since, as one: each row once, and not a second old."""
