"""The servers that topics are read from: of three protocols, Penstock or not."""
