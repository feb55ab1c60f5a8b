"""Faults that other rooms were reported for: rake on third street, on money nobody called, a cap by
the seats taken.
"""

from services.game.hand import Rake
from services.game.pots import Pot
from services.wallet.rake import Cap, Schedule, assess
from tests.unit.game.play import act, third_street, up

FIVE_PER_CENT = Schedule("test", 1, basis_points=500, no_rake_on_third=True)


def test_a_hand_that_ends_on_third_street_is_not_raked() -> None:
    hand = third_street([200] * 6, "2c Kh 9d Js Qc 8h")
    act(hand, "p1 pb", "p2 cbr 10", "p3 f", "p4 f", "p5 f", "p6 f", "p1 f")
    want = hand.want
    assert isinstance(want, Rake)
    assert hand.result is not None
    assert hand.result.uncalled == ((1, 7),)
    assert want.pots == (Pot(12, (1,)),)
    assert (want.dealt_in, want.street) == (6, 3)
    assert assess(FIVE_PER_CENT, want.pots, want.dealt_in, want.street) == (0,)


def test_money_that_nobody_called_is_not_raked() -> None:
    hand = third_street([200] * 3, "2c Kh 9d", "Ad 3h 4s 5d 6h 7s", ante=9)
    act(hand, "p1 cbr 10", "p2 cc", "p3 f")
    up(hand, "3h Ad")
    act(hand, "p2 cc", "p1 cc")
    up(hand, "4s 5d")
    act(hand, "p2 cbr 20", "p1 f")
    want = hand.want
    assert isinstance(want, Rake)
    assert want.pots == (Pot(47, (1,)),)
    assert assess(FIVE_PER_CENT, want.pots, want.dealt_in, want.street) == (2,)
    assert assess(FIVE_PER_CENT, (Pot(60, (1,)),), 3, 5) == (3,)


def test_the_cap_goes_by_players_dealt_in() -> None:
    capped = Schedule("test", 1, basis_points=500, caps=(Cap(2, 100), Cap(3, 200), Cap(5, 300)))
    pots = (Pot(80_00, (0, 1)),)
    assert [assess(capped, pots, dealt_in, 7) for dealt_in in (2, 3, 4, 5, 8)] == [
        (100,),
        (200,),
        (200,),
        (300,),
        (300,),
    ]
