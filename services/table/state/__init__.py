"""A table as it is stored and as each viewer may see it: pure, nothing is changed here."""
