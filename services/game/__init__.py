"""The game, pure: cards, boards, betting, pots, hands and the house rules that govern them.

Nothing here does I/O, reads a clock or draws a random number. `hand.Hand` is the state machine;
`docs/rules.md` says what it must do.
"""
