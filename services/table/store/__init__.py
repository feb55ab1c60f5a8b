"""Redis: the wire to it, its scripts and keys, what is sealed there, and how it is."""
