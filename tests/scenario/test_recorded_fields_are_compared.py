"""What a record says beside its actions is compared: every wrong value is named as a difference."""

from collections.abc import Iterator
from typing import Any

import pytest

from services.game.phh import PhhError, parse_phh
from services.game.replay import Replayed, replay
from tests.scenario.phh_text import HANDS, Fields, fields_of, text_of

CASES = sorted(HANDS.glob("cases/*.phh"))
SOME = [*CASES, *sorted(HANDS.glob("*/*.phh"))[20::32]]


def replayed(fields: Fields, **changes: Any) -> Replayed:
    return replay(parse_phh(text_of({**fields, **changes})))


def case(name: str) -> Fields:
    return fields_of(HANDS / "cases" / f"{name}.phh")


def one_unit_moved(amounts: list[int]) -> Iterator[list[int]]:
    """The amounts with a unit more for one player, and less for the next where that balances."""
    for seat in range(len(amounts)):
        moved = list(amounts)
        moved[seat] += 1
        yield moved


@pytest.mark.parametrize("file", SOME, ids=lambda file: file.stem)
@pytest.mark.parametrize("name", ["finishing_stacks", "_uncalled", "_payouts"])
def test_an_amount_of_one_player_that_is_wrong(file: Any, name: str) -> None:
    fields = fields_of(file)
    done = replayed(fields)
    right = {"_uncalled": done.uncalled, "_payouts": done.payouts}.get(name, done.finishing_stacks)
    assert replayed(fields, **{name: list(right)}).error == ""
    for wrong in one_unit_moved(list(right)):
        assert replayed(fields, **{name: wrong}).error.startswith(name.removeprefix("_"))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_pots_that_are_wrong(file: Any) -> None:
    fields = fields_of(file)
    pots = fields["_pots"]
    [amount, players], *others = pots
    everyone = list(range(1, len(fields["starting_stacks"]) + 1))
    wrong = [
        [[amount + 1, players], *others],
        [[amount, players[1:]], *others],
        [*pots, [0, players]],
        others,
    ]
    wrong += [[*others, [amount, players]]] if others else []
    wrong += [[[amount, everyone], *others]] if players != everyone else []
    for changed in wrong:
        assert replayed(fields, _pots=changed).error.startswith("pots")
    shuffled = [[amount, players[::-1]], *others]
    assert replayed(fields, _pots=shuffled).error == ""


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_actions_said_to_be_refused_or_accepted_wrongly(file: Any) -> None:
    fields = fields_of(file)
    for at, action in fields.get("_illegal", []):
        error = replayed(fields, _legal=[[at, action]]).error
        assert error.startswith(f"after {at} actions {action!r} is refused")
    for at, action in fields.get("_legal", []):
        error = replayed(fields, _illegal=[[at, action]]).error
        assert error == f"after {at} actions {action!r} is accepted"


@pytest.mark.parametrize("file", SOME, ids=lambda file: file.stem)
def test_what_was_done_is_accepted_in_its_place(file: Any) -> None:
    fields = fields_of(file)
    done = [
        [at, action]
        for at, action in enumerate(fields["actions"])
        if at not in fields.get("_time_out", [])
    ]
    if "room raise rule" not in fields.get("_situations", []):
        capped = {"p2 cbr 750000"}
        taken = [[at, action] for at, action in done if action not in capped]
        assert replayed(fields, _legal=taken, _illegal=[]).error == ""


@pytest.mark.parametrize("kind", ["_legal", "_illegal"])
def test_a_trial_after_more_actions_than_there_are(kind: str) -> None:
    assert "there are fewer" in replayed(case("quartering-101"), **{kind: [[99, "p1 f"]]}).error


def test_cards_tried_in_the_middle_of_a_street() -> None:
    fields = case("worked-example-club")
    legal = [[1, "d dh p2 2c2d2h"], [9, "d dh p3 2c"], [10, "d dh p4 ??"], [10, "d dh p3 2c"]]
    assert replayed(fields, _legal=legal, _illegal=[]).error == ""
    for at, action in (
        (1, "d dh p1 2c2d2h"),  # he has his cards
        (1, "d dh p2 2c2d"),  # too few
        (1, "d dh p2 7c2d2h"),  # p1's card
        (1, "d dh p2 2c2c2h"),  # a card twice
        (10, "d dh p1 2c"),  # he has his card
        (10, "d dh p3 Kh"),  # p1's new card
        (10, "d dh p2 2c"),  # he has folded
        (10, "d db 2c"),
        (10, "p1 cc"),
        (12, "d dh p1 2c"),
    ):
        assert replayed(fields, _legal=[], _illegal=[[at, action]]).error == "", action


def test_shows_that_are_tried() -> None:
    fields = case("quartering-101")
    at = len(fields["actions"]) - 2
    assert replayed(fields, _legal=[[at, "p1 sm Ah2d4c5s7hKdKs"], [at, "p1 sm"]]).error == ""
    assert replayed(fields, _illegal=[[at, "p3 sm 8c6c9cKc"], [7, "p1 sm Ah2d4c"]]).error == ""


# Time


def test_time_outs_lead_to_what_the_record_has() -> None:
    fields = case("time-out-check-or-fold-club")
    assert replayed(fields, _time_out=[17, 3, 11]).error == ""
    assert replayed(fields, _time_out=[]).error == ""
    for wrong in ([4], [3, 11, 15], [3, 11, 16, 17, 18], [0]):
        assert replayed(fields, _time_out=wrong).error != "", wrong


def test_a_protected_player_is_not_asked_again() -> None:
    fields = case("time-out-protected-triopoker")
    assert "p1 is to act" in replayed(fields, _time_out=[], _illegal=[]).error
    assert "something else follows" in replayed(fields, _time_out=[5], _illegal=[]).error
    assert replayed(fields, _time_out=[6], _illegal=[[9, "p1 cc"], [6, "p1 cbr 1000"]]).error == ""
    assert "is refused" in replayed(fields, _legal=[[6, "p1 cc"]], _illegal=[]).error


# Rake


def raked(terms: dict[str, Any], **more: Any) -> Replayed:
    """Pots of 9 and 2, which p1 and p2 win, under a schedule."""
    fields = {**case("bring-in-all-in-two-callers"), "_rake_schedule": terms}
    del fields["_rake"]
    return replayed({**fields, **more})


@pytest.mark.parametrize(
    ("terms", "stacks"),
    [
        ({"percent": 5}, [9, 198, 196]),
        ({"percent": 30}, [6, 198, 196]),  # 3.3 of 11: 2.45 and 0.54, the left over to the main pot
        ({"percent": 50, "rounding": "down"}, [4, 198, 196]),  # 5.5: 5 + 0
        ({"percent": 50, "rounding": "half_even"}, [4, 197, 196]),  # 6: 4 + 1, and one more: 5 + 1
        ({"per_full": 5, "units": 1}, [7, 198, 196]),
        ({"per_full": 5, "units": 2}, [5, 198, 196]),
        ({"percent": 50, "cap": 2}, [7, 198, 196]),
        ({"percent": 50, "minimum_pot": 12}, [9, 198, 196]),
        ({"percent": 100}, [0, 196, 196]),
    ],
)
def test_a_schedule_is_due_to_the_unit(terms: dict[str, Any], stacks: list[int]) -> None:
    assert raked(terms, finishing_stacks=stacks).error == ""
    for wrong in one_unit_moved(stacks):
        assert raked(terms, finishing_stacks=wrong).error.startswith("finishing_stacks")


def test_a_recorded_rake_must_be_what_its_schedule_says() -> None:
    stacks = [6, 198, 196]
    assert raked({"percent": 30}, finishing_stacks=stacks, _rake=3).error == ""
    for wrong in (0, 2, 4):
        error = raked({"percent": 30}, finishing_stacks=stacks, _rake=wrong).error
        assert error == f"rake {wrong} is recorded, 3 is due by its schedule"


def test_a_recorded_rake_is_taken_and_a_wrong_one_shows_in_the_stacks() -> None:
    fields = case("bring-in-all-in-two-callers")
    assert replayed(fields, _rake=3, finishing_stacks=[6, 198, 196]).error == ""
    assert replayed(fields, _rake=2, finishing_stacks=[6, 198, 196]).error != ""
    assert "11 is in the pots" in replayed(fields, _rake=12).error


def test_third_street_is_raked_as_the_rulebook_says() -> None:
    fields = {**case("cap-lifted-heads-up-triopoker"), "_rake_schedule": {"percent": 10}}
    del fields["_rake"]
    assert replayed(fields, finishing_stacks=[17450, 22040]).error == ""
    no_third = {"rake_on_third_street": "no"}
    assert replayed(fields, _house=no_third, finishing_stacks=[17450, 22550]).error == ""
    for_none = {"percent": 10, "no_rake_on_third": True}
    assert replayed(fields, _rake_schedule=for_none).error == ""


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"percent": 5, "per_full": 20, "units": 1},
        {"per_full": 20, "units": 21},
        {"per_full": 0, "units": 0},
        {"percent": 101},
        {"percent": 5, "rounding": "up"},
        {"percent": 5, "caps": 3},
        {"percent": "5"},
    ],
)
def test_a_schedule_that_is_none_cannot_be_read(terms: dict[str, Any]) -> None:
    with pytest.raises(PhhError, match="_rake_schedule"):
        raked(terms)


def test_a_rulebook_or_a_setting_that_there_is_not_cannot_be_read() -> None:
    with pytest.raises(PhhError, match="_rulebook"):
        replayed(case("quartering-101"), _rulebook="nobody's")
    with pytest.raises(PhhError, match=r"_house\.raise_caps"):
        replayed(case("quartering-101"), _house={"raise_caps": 3})
    with pytest.raises(PhhError, match=r"_house\.odd_chip_low"):
        replayed(case("quartering-101"), _house={"odd_chip_low": "luck"})
