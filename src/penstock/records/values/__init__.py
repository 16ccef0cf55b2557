"""Values of many records read into columns of a declared shape: JSON and Avro."""
