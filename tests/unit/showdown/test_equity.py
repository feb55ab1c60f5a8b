"""Equities against brute force with a slow ranker, and samples against enumerations."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import comb

import pytest

from services.game.cards import parse_cards
from services.game.rulebook import Game
from services.showdown.equity import SAMPLE_DEALS, Estimation, Spot, Worth
from tests.unit.ranking import slow_ranker

SEED = 20240615
ALL = 10**12


def estimated(
    spot: Spot, *, exact_deals_max: int = ALL, standard_error_max: float = 0.01, seed: int = SEED
) -> Estimation:
    estimation = Estimation(
        spot, exact_deals_max=exact_deals_max, standard_error_max=standard_error_max, seed=seed
    )
    while part := estimation.next_part():
        estimation.add(part())
    return estimation


def spot(game: Game, *hands: str, unseen: str, **fields: object) -> Spot:
    """A spot in which only the cards of `unseen` may come: all others are dead."""
    known = tuple(parse_cards(hand) for hand in hands)
    community = fields.pop("community", None)
    shared = parse_cards(str(community))[0] if community else None
    alive = {*parse_cards(unseen), *(card for hand in known for card in hand), shared}
    dead = tuple(card for card in range(52) if card not in alive)
    return Spot(game, known, dead=dead, community=shared, **fields)  # type: ignore[arg-type]


def brute_force(spot: Spot) -> list[tuple[Fraction, Fraction]]:
    """Of each player, what he gets from high and from low hands, deal by deal."""
    totals = [[Fraction(0), Fraction(0)] for _ in spot.hands]
    count = 0
    for hands in every_deal(spot):
        count += 1
        for player, (high, low) in enumerate(divided(spot, hands)):
            totals[player][0] += high
            totals[player][1] += low
    assert count == spot.deals
    return [(high / count, low / count) for high, low in totals]


def every_deal(spot: Spot) -> Iterator[list[tuple[int, ...]]]:
    def complete(
        players: list[int], left: frozenset[int], shared: tuple[int, ...]
    ) -> Iterator[list[tuple[int, ...]]]:
        if not players:
            yield []
            return
        first, *others = players
        for drawn in combinations(sorted(left), spot.missing[first]):
            for rest in complete(others, left - {*drawn}, shared):
                yield [(*spot.hands[first], *drawn, *shared), *rest]

    unseen = frozenset(spot.unseen)
    communities = [(spot.community,)] if spot.community is not None else [()]
    if spot.community_to_come:
        communities = [(card,) for card in sorted(unseen)]
    for shared in communities:
        yield from complete([*range(len(spot.hands))], unseen - {*shared}, shared)


def divided(spot: Spot, hands: list[tuple[int, ...]]) -> list[tuple[Fraction, Fraction]]:
    if spot.game is Game.RAZZ:
        return [(Fraction(0), share) for share in shares(hands, slow_ranker.razz_of_five)]
    high_of_five = slow_ranker.wild_of_five if spot.wild_deuces else slow_ranker.high_of_five
    highs = shares(hands, high_of_five)
    if spot.game is Game.HIGH:
        return [(share, Fraction(0)) for share in highs]
    lows = shares(hands, slow_ranker.eight_or_better_of_five)
    if not any(lows):
        return [(share, Fraction(0)) for share in highs]
    return [(high / 2, low / 2) for high, low in zip(highs, lows, strict=True)]


def shares(hands: list[tuple[int, ...]], of_five: object) -> list[Fraction]:
    strengths = [slow_ranker.best(hand, of_five) for hand in hands]  # type: ignore[arg-type]
    known = [strength for strength in strengths if strength is not None]
    if not known:
        return [Fraction(0) for _ in hands]
    winners = [strength == max(known) for strength in strengths]
    return [Fraction(won, sum(winners)) for won in winners]


SPOTS = [
    spot(Game.HIGH, "AsAhKd2c3c4h", "7c8c9cTdJhJs", unseen="5c6c7d8dQcTc9d2d"),
    spot(Game.HIGH, "AsAhKd2c3c", "7c8c9cTd", "KsKhQd2h3s4s", unseen="5c6c7d8dQcTc9d"),
    spot(Game.HI_LO, "AsAh5d2c3c4h", "7c8c2s3d4sAd", "KsKhQd2h3s", unseen="5c6c7d8dTc9d2d"),
    spot(Game.HI_LO, "As2s3s4sKdKh7d", "Ad2d3d4dQcQh", unseen="5c6c7c8dTc9d"),
    spot(Game.RAZZ, "As2s3sKdKhKc", "2d3d4dQcQh", unseen="5c6c7c8dTc9dAd"),
    spot(Game.HIGH, "AsAhKd2c3c", "7c8c9cTdJh", unseen="5c6c7d8dQcTc", community="9h"),
    # Six cards are not enough for a seventh card of eight players, nor for three.
    spot(Game.HI_LO, "AsAhKd2c3c4h", "7c8c9cTdJhJs", "5s5h6s6d7s8s", unseen="5cQc"),
    spot(Game.RAZZ, "AsAhKd2c3c", "7c8c9cTdJhJs", "5s5h6s6d7s8s", unseen="5cQc"),
    spot(Game.HIGH, "AsKsQsJs9h3d", "7c7d8h8s9cTd", unseen="2c2d3s9s", wild_deuces=True),
]


@pytest.mark.parametrize("case", SPOTS, ids=range(len(SPOTS)))
def test_enumerations_are_what_brute_force_finds(case: Spot) -> None:
    estimation = estimated(case)
    assert estimation.exact
    assert estimation.precise
    assert estimation.deals == case.deals
    for worth, (high, low) in zip(estimation.worths(), brute_force(case), strict=True):
        assert worth.high == pytest.approx(float(high), abs=1e-12)
        assert worth.low == pytest.approx(float(low), abs=1e-12)
        assert worth.equity == pytest.approx(float(high + low), abs=1e-12)
        assert worth.standard_error == 0


@pytest.mark.parametrize("game", Game)
def test_a_sample_agrees_with_the_enumeration_within_its_error(game: Game) -> None:
    case = Spot(game, (parse_cards("AsAhKd2c3c"), parse_cards("7c8c9cTd2h")))
    exact = estimated(case).worths()
    sample = estimated(case, exact_deals_max=0, standard_error_max=0.001)
    assert not sample.exact
    for worth, truth in zip(sample.worths(), exact, strict=True):
        assert worth.standard_error <= 0.001
        assert abs(worth.equity - truth.equity) < 5 * worth.standard_error
        assert worth.whole == pytest.approx(truth.whole, abs=0.01)
        assert worth.part == pytest.approx(truth.part, abs=0.01)


def test_a_sample_with_a_community_card_to_come_agrees_with_the_enumeration() -> None:
    case = SPOTS[6]
    assert case.community_to_come
    sample = estimated(case, exact_deals_max=0, standard_error_max=0.002).worths()
    for worth, truth in zip(sample, estimated(case).worths(), strict=True):
        assert abs(worth.equity - truth.equity) < 5 * worth.standard_error


@pytest.mark.parametrize("case", SPOTS, ids=range(len(SPOTS)))
def test_equities_add_up_to_the_pot(case: Spot) -> None:
    assert sum(worth.equity for worth in estimated(case).worths()) == pytest.approx(1)
    sample = estimated(case, exact_deals_max=0, standard_error_max=0.1)
    assert sum(worth.equity for worth in sample.worths()) == pytest.approx(1)


def test_unknown_hands_are_worth_the_same() -> None:
    worths = estimated(Spot(Game.HI_LO, ((),) * 8), standard_error_max=0.002).worths()
    assert all(abs(worth.equity - 1 / 8) < 5 * worth.standard_error for worth in worths)


def test_eight_players_who_all_stay_see_a_community_card() -> None:
    eight = Spot(Game.HIGH, ((),) * 8)
    assert eight.community_to_come
    assert eight.missing == (6,) * 8
    assert not Spot(Game.HIGH, ((),) * 7).community_to_come
    # Two folded boards leave too few for seven as well.
    assert Spot(Game.HIGH, ((),) * 7, dead=(0, 1, 2, 3)).community_to_come


def test_deals_are_counted_before_any_is_looked_at() -> None:
    case = Spot(Game.HIGH, (parse_cards("AsAhKd2c"), parse_cards("7c8c9cTd")))
    assert case.deals == comb(44, 3) * comb(41, 3)
    known = Spot(Game.HIGH, (parse_cards("AsAhKd2c3c4c5c"), parse_cards("7c8c9cTdJdQdKc")))
    assert known.deals == 1
    [loser, winner] = estimated(known).worths()
    assert (winner.equity, winner.whole, loser.equity) == (1, 1, 0)


def test_more_deals_than_asked_for_are_sampled() -> None:
    case = SPOTS[0]
    assert Estimation(case, exact_deals_max=case.deals, standard_error_max=0.1, seed=1).exact
    assert not Estimation(
        case, exact_deals_max=case.deals - 1, standard_error_max=0.1, seed=1
    ).exact


def test_a_sample_ends_as_soon_as_it_is_precise() -> None:
    rough = estimated(SPOTS[1], exact_deals_max=0, standard_error_max=0.1)
    fine = estimated(SPOTS[1], exact_deals_max=0, standard_error_max=0.001)
    assert rough.deals == SAMPLE_DEALS
    assert fine.deals > rough.deals
    assert fine.progress == 1


def test_what_never_happened_in_a_sample_is_not_said_to_be_impossible() -> None:
    # A royal flush against what cannot beat it.
    case = Spot(Game.HIGH, (parse_cards("AsKsQsJsTs"), parse_cards("2c2d")))
    sample = estimated(case, exact_deals_max=0)
    assert [worth.equity for worth in sample.worths()] == [1, 0]
    assert all(worth.standard_error > 0 for worth in sample.worths())


def test_the_same_seed_gives_the_same_sample_and_another_another() -> None:
    def worths(seed: int) -> list[Worth]:
        return estimated(SPOTS[1], exact_deals_max=0, standard_error_max=0.002, seed=seed).worths()

    assert worths(1) == worths(1)
    assert worths(1) != worths(2)


@pytest.mark.parametrize(
    ("hands", "fields"),
    [
        (((),) * 8, {"dead": tuple(range(4, 10))}),
        ((parse_cards("AsAhKd2c3c4c5c"), ()), {"community": 40}),
        ((tuple(range(7)), *((),) * 7), {"dead": ()}),
    ],
)
def test_too_few_cards_for_everyone_are_refused(
    hands: tuple[tuple[int, ...], ...], fields: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match="not enough cards"):
        Spot(Game.HIGH, hands, **fields)  # type: ignore[arg-type]
