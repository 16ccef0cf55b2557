"""Everything durable that is not a message, in SQL."""
