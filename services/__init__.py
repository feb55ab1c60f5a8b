"""Doorcard: the back end of an online Seven Card Stud room. One package per service; see README.md."""
