"""The three large tables: the class of seven cards by the sum of their faces, flushes left out.

7,825,760 entries of 16 bits, 15.7 MB each. They are made when they are first asked for, unless the
process has given one that it keeps elsewhere, such as a file that several processes map.
"""

from typing import Final

from services.game.ranking.keys import FACES

ENTRIES: Final = 4 * FACES[12] + 3 * FACES[11] + 1
"""Entries of a table; the largest sum is that of four aces and three kings."""

DIGESTS: Final = {
    "high": "1132f5cfcee57df4a7ac2cd178faa578cae14bda63e9ea151d0b987b029b0620",
    "ace_to_five": "e12b1a3cc0ec4c6b7bdcfd6094b4ccfc712f774b9f7f426b6eb381dadb7927a7",
    "deuces_wild": "88d7fc0183148153b892580af273f2525a6440e58477e9a24df31b9b04e55110",
}
"""By the name of the order: the SHA-256 of its table in little-endian 16-bit words."""

_given: dict[str, "memoryview[int]"] = {}


def table(order: str) -> "memoryview[int]":
    """The table of an order, a key of `DIGESTS`; made now if it is not there, in about 0.1 s."""
    if order not in _given:
        # numpy takes longer to import than the rest of the game; who has the tables needs none.
        from services.game.ranking import tables  # noqa: PLC0415

        _given[order] = tables.dense(order, 7).data.toreadonly()
    return _given[order]


def give(order: str, kept: "memoryview[int]") -> None:
    """Use this table from now on; before the first ranking, which looks its table up for good.

    Its content is the caller's to know (`DIGESTS`). Raises ValueError for another size or format.
    """
    if order not in DIGESTS or kept.format != "H" or len(kept) != ENTRIES:
        raise ValueError(f"a table of {ENTRIES} unsigned 16-bit numbers belongs to {[*DIGESTS]}")
    _given[order] = kept.toreadonly()
