"""One file a command, named by its number on the wire; `registry` lists them all."""
