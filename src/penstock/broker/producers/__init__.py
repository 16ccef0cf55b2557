"""Who writes: ids of producers, and what a partition remembers of them."""
