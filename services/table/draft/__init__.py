"""A table being changed on its way to one commit: its money, its clock, its audit record."""
