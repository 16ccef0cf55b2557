"""From stored batches to what a reader of any protocol understands."""
