"""Fair, sealed, provable decks: randomness has this one home."""
