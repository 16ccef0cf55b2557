"""How long messages are kept: the one rule, and what looks after it."""
