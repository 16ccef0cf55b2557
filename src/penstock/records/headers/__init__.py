"""Headers that records are given and lose again: what not every encoding can express."""
