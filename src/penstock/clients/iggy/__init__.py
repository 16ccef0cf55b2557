"""The Iggy client of pipelines."""
