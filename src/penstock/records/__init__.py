"""The batch formats of the three protocols, and the conversion between them."""
