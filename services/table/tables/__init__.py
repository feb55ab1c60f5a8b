"""The tables one replica serves: mailboxes, load-change-commit, the sweep, money and moves on their
way to a seat.
"""
