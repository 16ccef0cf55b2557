"""The load generators: one client per protocol, the same for both sides of a comparison."""
