"""Policies: which consumer of a subscription gets what goes out next."""
