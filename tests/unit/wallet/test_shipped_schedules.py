"""The shipped rake schedules, and files that are refused."""

import hashlib
from pathlib import Path

import pytest

from services.game.pots import Pot
from services.game.rulebook import Game, shipped, shipped_names
from services.wallet.messages import schedule_message
from services.wallet.rake import assess
from services.wallet.schedules import FOLDER, Row, ScheduleError, Schedules, read_versions

PUBLISHED = {
    ("cents-per-twenty", 1): "79b46f5c09f12c10",
    ("club", 1): "02b9b7224da2f374",
    ("default", 1): "c77575a3b5ccaeeb",
    ("none", 1): "5f3045597234ca26",
    ("standard", 1): "c62fce7e51477521",
    ("staircase", 1): "b78797b224b26c9f",
    ("steps", 1): "2f53c7b2e54f152d",
    ("steps-by-stake", 1): "833b2e922a60809f",
}
"""(id, version) -> the beginning of the SHA-256 of its message.

Tables pin versions: if one changed, hands already played could no longer be checked. A new idea is
a new version.
"""


def test_a_published_version_never_changes() -> None:
    found = {}
    for name, versions in Schedules()._versions.items():
        for version, rows in enumerate(versions, start=1):
            content = b"".join(
                place_of(row) + schedule_message(row.schedule).SerializeToString(deterministic=True)
                for row in rows
            )
            found[name, version] = hashlib.sha256(content).hexdigest()[:16]
    assert found == PUBLISHED


def place_of(row: Row) -> bytes:
    """Where a row holds; nothing for one that holds everywhere."""
    if not row.small_bet_from and not row.games:
        return b""
    return f"{row.small_bet_from} {sorted(row.games)};".encode()


def test_every_stake_of_the_shipped_rulebooks_has_its_schedule() -> None:
    schedules = Schedules()
    seen = 0
    for name in shipped_names():
        rulebook = shipped(name)
        if not rulebook.rake_schedule:
            continue
        for stake in rulebook.stakes:
            found = schedules.find(rulebook.rake_schedule, 0, rulebook.game, stake.small_bet)
            assert found is not None, (name, stake.name)
            assert found.caps, (name, stake.name)
            # Nobody is to pay more than a bet for a hand.
            assert found.caps[-1].cap <= 2 * stake.small_bet, (name, stake.name)
            seen += 1
    assert seen > 20


def rake(schedule_id: str, small_bet: int, pot: int, players: int, street: int = 7) -> int:
    schedule = Schedules().find(schedule_id, 1, Game.HIGH, small_bet)
    assert schedule is not None
    return sum(assess(schedule, [Pot(pot, (0, 1))], players, street))


@pytest.mark.parametrize(
    ("schedule_id", "small_bet", "pot", "players", "expected"),
    [
        # $1/$2: $0.25 for each $5, at most $2
        ("steps-by-stake", 100, 499, 6, 0),
        ("steps-by-stake", 100, 500, 6, 25),
        ("steps-by-stake", 100, 999, 6, 25),
        ("steps-by-stake", 100, 4000, 2, 200),
        ("steps-by-stake", 100, 9000, 8, 200),
        # $2/$4: the same steps, capped by players
        ("steps-by-stake", 200, 9000, 2, 100),
        ("steps-by-stake", 200, 9000, 3, 200),
        ("steps-by-stake", 200, 9000, 4, 200),
        ("steps-by-stake", 200, 9000, 5, 300),
        # $3/$6: $0.50 for each $10
        ("steps-by-stake", 300, 1999, 5, 50),
        ("steps-by-stake", 300, 2000, 5, 100),
        # $10/$20 is as $5/$10: $1 for each $20
        ("steps-by-stake", 1000, 5999, 6, 200),
        # $25/$50: the highest cap from four players
        ("steps-by-stake", 2500, 90_000, 3, 200),
        ("steps-by-stake", 2500, 90_000, 4, 300),
        # $0.50/$1: $0.01 for each $0.20, at most $0.50
        ("cents-per-twenty", 50, 119, 6, 5),
        ("cents-per-twenty", 50, 5000, 6, 50),
        ("cents-per-twenty", 100, 5000, 2, 100),
        ("cents-per-twenty", 200, 9000, 3, 100),
        ("cents-per-twenty", 200, 9000, 5, 200),
        ("cents-per-twenty", 500, 9000, 6, 300),
        # uneven steps
        ("staircase", 2, 24, 6, 1),
        ("staircase", 2, 25, 6, 2),
        ("staircase", 2, 5000, 6, 7),
        ("staircase", 10, 199, 2, 10),
        ("staircase", 500, 1999, 6, 0),
        ("staircase", 500, 2999, 6, 100),
        ("staircase", 500, 3000, 6, 150),
        ("staircase", 500, 3000, 3, 100),
        ("staircase", 500, 9000, 5, 200),
        ("staircase", 500, 9000, 6, 300),
        ("staircase", 3000, 8500, 8, 250),
        # a true percentage, half to even: 4.5 % of 10.00 and 30.00
        ("default", 100, 1000, 6, 45),
        ("default", 100, 300, 6, 14),
        ("default", 100, 500, 6, 22),
        ("default", 500, 5000, 3, 175),
        ("default", 500, 90_000, 3, 200),
        ("default", 2000, 90_000, 5, 300),
    ],
)
def test_steps_and_caps_are_those_of_the_published_tables(
    schedule_id: str, small_bet: int, pot: int, players: int, expected: int
) -> None:
    assert rake(schedule_id, small_bet, pot, players) == expected


def test_a_stake_below_the_first_row_has_no_schedule() -> None:
    schedules = Schedules()
    assert schedules.find("steps-by-stake", 0, Game.HIGH, 1) is None
    assert schedules.find("steps-by-stake") is None
    standard = schedules.find("standard")
    assert standard == schedules.find("standard", 1, Game.RAZZ, 12_345) is not None


def test_a_row_for_a_game_goes_before_one_for_all(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        "[[versions]]\nversion = 1\nbasis_points = 500\n"
        "[[versions.rows]]\nsmall_bet_from = 100\n"
        '[[versions.rows]]\nsmall_bet_from = 100\ngames = ["hi_lo", "razz"]\nbasis_points = 300\n'
        "[[versions.rows]]\nsmall_bet_from = 500\nbasis_points = 200\n"
    )
    schedules = Schedules(tmp_path)

    def points(game: Game | None, small_bet: int) -> int | None:
        found = schedules.find("own", 1, game, small_bet)
        return found.basis_points if found else None

    assert points(Game.HIGH, 99) is None
    assert [points(game, 100) for game in (Game.HIGH, Game.HI_LO, Game.RAZZ, None)] == [
        500, 300, 300, 500,
    ]  # fmt: skip
    assert points(Game.RAZZ, 500) == 200


def test_version_0_is_the_newest_and_unknown_ones_are_none() -> None:
    schedules = Schedules()
    newest = schedules.find("standard")
    assert newest is not None
    assert schedules.find("standard", newest.version) == newest
    assert schedules.find("standard", newest.version + 1) is None
    assert schedules.find("standard", -1) is None
    assert schedules.find("standrad") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("versions = [", "bad.toml"),
        ("", "versions"),
        ("versions = []", "no versions"),
        ("[[versions]]\nversion = 2", "version 1 is missing"),
        ("[[versions]]\nversion = 1\nbasis_point = 5", "basis_point"),
        ('[[versions]]\nversion = 1\nrounding = "up"', "up"),
        ("[[versions]]\nversion = 1\nbasis_points = 20000", "basis_points must be 0 to 10000"),
        ("[[versions]]\nversion = 1\ncaps = [{ players_from = 2 }]", "cap"),
        ("[[versions]]\nversion = 1\nrows = []", "rows"),
        ('[[versions]]\nversion = 1\nrows = [{ games = ["omaha"] }]', "omaha"),
        ("[[versions]]\nversion = 1\nrows = [{ small_bet_from = -1 }]", "small_bet_from"),
        ("[[versions]]\nversion = 1\nrows = [{ small_bet_from = 1.5 }]", "small_bet_from"),
        ("[[versions]]\nversion = 1\nrows = [{}, {}]", "one for each"),
        (
            "[[versions]]\nversion = 1\n"
            'rows = [{ games = ["razz"] }, { games = ["high", "razz"] }]',
            "one for each",
        ),
        (
            "[[versions]]\nversion = 1\nstaircase = [{ pot_from = 5, rake = 6 }]",
            "not take more than the pot",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_fault(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ScheduleError) as caught:
        read_versions(path)
    assert said in str(caught.value)
    assert "bad.toml" in str(caught.value)


def test_a_house_has_schedules_of_its_own_beside_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text("[[versions]]\nversion = 1\nper_full = 50\nunits = 2\n")
    schedules = Schedules(FOLDER, tmp_path)
    found = schedules.find("ours")
    assert found is not None
    assert (found.schedule_id, found.per_full, found.units) == ("ours", 50, 2)
    assert schedules.find("standard") is not None


def test_a_house_cannot_give_a_shipped_schedule_other_terms(tmp_path: Path) -> None:
    (tmp_path / "standard.toml").write_text("[[versions]]\nversion = 1\n")
    with pytest.raises(ScheduleError, match="there is such a schedule already"):
        Schedules(FOLDER, tmp_path)
