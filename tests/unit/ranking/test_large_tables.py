"""The three large tables: what is in them, and where a process may keep them."""

import hashlib
import subprocess
import sys
from array import array

import pytest

from services.game.ranking import sevens, tables


@pytest.mark.parametrize("order", sevens.DIGESTS)
def test_a_table_that_is_made_is_the_one_that_the_program_names(order: str) -> None:
    made = tables.dense(order, 7)
    assert len(made) == sevens.ENTRIES
    assert hashlib.sha256(made.astype("<u2").tobytes()).hexdigest() == sevens.DIGESTS[order]


@pytest.mark.parametrize(
    ("order", "kept"),
    [
        ("high", memoryview(array("H", [1, 2, 3]))),
        ("high", memoryview(bytes(2 * sevens.ENTRIES))),
        ("low8", memoryview(bytes(2 * sevens.ENTRIES)).cast("H")),
    ],
)
def test_what_cannot_be_a_table_is_refused(order: str, kept: "memoryview[int]") -> None:
    with pytest.raises(ValueError, match="7825760"):
        sevens.give(order, kept)


def test_with_a_table_at_hand_seven_cards_are_ranked_without_numpy() -> None:
    code = (
        "import sys\n"
        "from services.game.ranking import sevens, scalar\n"
        "sevens.give('high', memoryview(bytes(2 * sevens.ENTRIES)).cast('H'))\n"
        "scalar.high((0, 5, 10, 15, 20, 25, 30)), scalar.low8((0, 5, 10, 15, 20, 25, 30))\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
