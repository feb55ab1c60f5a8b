"""The lobby: its lines read, filtered and watched; closed tables leave it."""
