"""How the tasks of a batch write, and how all that they wrote becomes visible, by server."""
