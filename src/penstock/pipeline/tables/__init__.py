"""Tables that hold each row of a stream once, and how tasks write their files."""
