"""`doorcard load`: many tables at once, and how the room bears them.

`pace` says when tables act, `tables` follows each of them, `streams` carries what they say and see,
`run` opens a room's tables, plays and compares the books, `report` is what came out.
"""
