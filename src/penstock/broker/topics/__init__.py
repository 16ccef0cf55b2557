"""Topics: their names, their settings, their partitions, and the catalogue of all of them."""
