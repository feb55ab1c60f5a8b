"""A recorded hand staged for a table: decks, the button's draw, moves, and what must come out."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from services.game.hand import Act, Deal, Hand, Rake, Showdown
from services.game.phh import RecordedHand, parse_phh
from services.game.pots import rake_shares
from services.game.recorded_rules import rake_of
from services.game.rulebook import parse_rulebook, shipped, shipped_names
from services.game.showdown import divide
from services.game.staging import Staging, UnstageableError, rulebook_toml, stage

HANDS = Path(__file__).parents[2] / "hands"
FILES = sorted(HANDS.glob("*/*.phh"))
UNSTAGEABLE = {"kingsclub-stud-0001": "an amount by a rule of the room's own"}


def recorded(name: str, *changes: tuple[str, str]) -> RecordedHand:
    text = (HANDS / f"{name}.phh").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_phh(text)


def played(staging: Staging) -> Hand:
    """The hand as a table plays it that knows nothing but decks, moves and the rake's terms."""
    hand = Hand(staging.setup)
    hand.start()
    moves = iter(staging.moves)
    while (want := hand.want) is not None:
        if isinstance(want, Deal):
            deck: Sequence[int] = staging.reshuffled if want.reshuffle else staging.deck
            hand.deal([deck[position] for position in want.positions])
        elif isinstance(want, Act):
            move = next(moves)
            assert (move.turn, move.seat) == (want.turn, want.seat)
            if move.kind:
                hand.act(move.seat, move.kind, move.amount)
            else:
                hand.time_out()
        elif isinstance(want, Rake):
            total = sum(pot.amount for pot in want.pots)
            rake = rake_of(staging.rake, total, want.street) if staging.rake else 0
            hand.rake(rake_shares(rake, want.pots))
        elif isinstance(want, Showdown):
            hand.settle(divide(want, staging.rulebook))
    assert next(moves, None) is None
    return hand


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_table_that_is_given_decks_and_moves_comes_to_the_recorded_stacks(file: Path) -> None:
    record = parse_phh(file.read_text())
    if file.stem in UNSTAGEABLE:
        with pytest.raises(UnstageableError, match=UNSTAGEABLE[file.stem]):
            stage(record)
        return
    staging = stage(record)
    hand = played(staging)
    assert tuple(hand.stacks[seat] for seat in staging.setup.seats) == record.finishing_stacks
    assert hand.result is not None
    assert sum(hand.result.rake) == staging.expected.rake


def test_the_buttons_draw_gives_its_seat_the_highest_card() -> None:
    staging = stage(recorded("online/stars-razz-0025"))
    cards = staging.draw[: len(staging.setup.seats)]
    assert staging.setup.seats[cards.index(max(cards))] == staging.setup.button == 1
    assert sorted(staging.draw) == sorted(staging.deck) == list(range(52))


def test_a_reshuffle_gives_the_cards_that_go_into_it() -> None:
    staging = stage(recorded("cases/short-deck-88855-reshuffle"))
    assert len(staging.reshuffled) == 7
    assert set(staging.reshuffled) < set(staging.deck)


def test_what_must_be_refused_is_tried_in_the_decision_it_is_meant_for() -> None:
    staging = stage(recorded("cases/time-out-protected-triopoker"))
    tried = {
        turn: [a.text for a in actions] for turn, actions in staging.refused.items() if actions
    }
    protected = next(move for move in staging.moves if not move.kind)
    assert tried == {protected.turn + 2: ["p1 cc"]}


def test_a_wager_beyond_what_anybody_can_match_is_made_as_it_is_offered() -> None:
    moves = stage(recorded("wsop/wsop-2023-43-5-85")).moves
    assert 1_200_000 in {move.amount for move in moves}


def test_a_hand_that_differs_is_not_staged() -> None:
    with pytest.raises(UnstageableError, match="finishing_stacks"):
        stage(
            recorded("cases/worked-example-club", ("[213, 199, 194, 194]", "[214, 198, 194, 194]"))
        )


def test_a_muck_that_would_have_won_is_not_staged() -> None:
    mucked = ("'p1 sm Ah2d4c5s7hKdKs', 'p2 sm As2c4d5h7sQdJh'", "'p1 sm', 'p2 sm As2c4d5h7sQdJh'")
    with pytest.raises(UnstageableError, match="mucked would have won"):
        stage(recorded("cases/quartering-101", mucked, ("[235, 184, 189,", "[159, 260, 189,")))


def test_a_stake_that_no_rulebook_takes_is_not_staged() -> None:
    other = ("big_bet = 10", "big_bet = 11")
    with pytest.raises(UnstageableError, match="twice the small bet"):
        stage(
            recorded(
                "cases/worked-example-club",
                other,
                ("'p1 cbr 10'", "'p1 cbr 11'"),
                ("_uncalled = [10,", "_uncalled = [11,"),
                (
                    "_legal = [[4, 'p3 cbr 5'], [8, 'p3 cbr 10'], [12, 'p1 cc'], [12, 'p1 cbr 5'],"
                    " [13, 'p3 cbr 20']]",
                    "",
                ),
            )
        )


@pytest.mark.parametrize("name", shipped_names())
def test_a_rulebook_is_written_as_it_is_read(name: str) -> None:
    rulebook = shipped(name)
    assert parse_rulebook(rulebook_toml(rulebook)) == rulebook
