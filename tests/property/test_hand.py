"""What must hold in every hand, whatever is drawn, done, or left undone."""

import inspect
import random
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.game.hand import Act, ActionKind, Deal, Hand, HandSetup, Refused
from services.game.rulebook import Rulebook, RulebookError, shipped
from services.game.steps import Step
from tests.unit.game.play import choices, deal_any, finish, stake

STEPS_MAX = 400
"""No hand takes as many inputs."""

HOUSES = st.fixed_dictionaries(
    {
        "game": st.sampled_from(["high", "hi_lo", "razz"]),
        "wild_deuces": st.booleans(),
        "bring_in_rule": st.sampled_from(["forced", "forced", "none"]),
        "bring_in_may_open_full": st.booleans(),
        "short_all_in_reopens_at": st.sampled_from(["half", "full"]),
        "raise_cap": st.integers(0, 4),
        "cap_lifted": st.sampled_from(["never", "two_in_hand", "round_began_two"]),
        "fourth_street_pair": st.booleans(),
        "first_to_act_tie": st.sampled_from(["position", "suit"]),
        "burn_cards": st.booleans(),
        "short_deck": st.sampled_from(["reshuffle_burns", "community", "tda"]),
        "community_card_opens": st.booleans(),
        "showdown": st.sampled_from(["all_show", "beaten_may_muck"]),
        "all_in_face_up": st.booleans(),
        "odd_chip_high": st.sampled_from(["position", "suit_high"]),
        "odd_chip_low": st.sampled_from(["position", "suit_low", "suit_high"]),
        "odd_chip_remainder": st.sampled_from(["one_each", "all_to_first"]),
        "time_out": st.sampled_from(["all_in_if_invested", "check_or_fold"]),
    }
)


@st.composite
def setups(draw: st.DrawFn) -> HandSetup:
    """Any table: short stacks, every house rule, bring-ins up to the small bet."""
    rulebook = _consistent(draw(HOUSES))
    count = draw(st.integers(2, 8))
    seats = tuple(sorted(draw(st.permutations(range(8)))[:count]))
    stacks = tuple(draw(st.lists(st.integers(1, 150), min_size=count, max_size=count)))
    bring_in = 0 if rulebook.bring_in_rule == "none" else draw(st.sampled_from([1, 3, 10]))
    stakes = stake(draw(st.integers(1, 5)), bring_in)
    return HandSetup(rulebook, stakes, seats, stacks, draw(st.sampled_from(seats)))


def _consistent(house: dict[str, Any]) -> Rulebook:
    """The house, with what contradicts its game or its deck switched off."""
    while True:
        try:
            return shipped("modern").with_house(**house)
        except RulebookError as error:
            for fault in error.faults:
                if fault.field == "short_deck":
                    house["burn_cards"] = True
                else:
                    house[fault.field] = "position" if "odd" in fault.field else False


def step(hand: Hand, rng: random.Random, rare: float) -> None:
    """One input: what is wanted, chosen at random, or (rarely) a time-out or a player leaving."""
    want = hand.want
    chance = rng.random()
    here = [seat for seat in hand.seats if seat not in hand.left]
    if chance < rare and here:
        hand.leave(rng.choice(here))
    elif isinstance(want, Deal):
        deal_any(hand, rng)
    elif isinstance(want, Act):
        if chance > 1 - rare:
            hand.time_out(protect=rng.random() < 0.7)
        else:
            hand.act(want.seat, *rng.choice(choices(want.legal)))
    else:
        finish(hand)


def under_way(setup: HandSetup, seed: int, steps: int, rare: float) -> tuple[Hand, random.Random]:
    """A hand after so many inputs, or at its end, and the generator that chose them."""
    rng = random.Random(seed)
    hand = Hand(setup)
    hand.start()
    for _ in range(steps):
        if not hand.over:
            step(hand, rng, rare)
    return hand, rng


def state(thing: Any) -> Any:
    """All that an object of the game consists of."""
    if isinstance(thing, list | tuple):
        return [state(item) for item in thing]
    if isinstance(thing, dict):
        return {key: state(item) for key, item in thing.items()}
    if isinstance(thing, int | str | HandSetup | Step) or thing is None:
        return thing
    kind: Any = type(thing)
    return {field: state(getattr(thing, field)) for field in _fields(kind)}


@lru_cache
def _fields(kind: type) -> list[str]:
    """The slots of a class in Python or of a compiled one."""
    members = [(name, getattr(kind, name, None)) for name in dir(kind) if name[:2] != "__"]
    return [
        name
        for name, member in members
        if inspect.ismemberdescriptor(member) or inspect.isgetsetdescriptor(member)
    ]


@settings(max_examples=150, deadline=None)
@given(setups(), st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.2]))
def test_a_hand_conserves_chips_repeats_no_card_asks_in_turn_and_ends(
    setup: HandSetup, seed: int, rare: float
) -> None:
    rng = random.Random(seed)
    hand = Hand(setup)
    hand.start()
    total = sum(setup.stacks)
    asked = (0, -1)
    for _ in range(STEPS_MAX):
        assert min(hand.stacks.values()) >= 0
        if hand.over:
            break
        if not hand.result:
            assert sum(hand.stacks.values()) + sum(hand.put_in.values()) == total
        dealt = [card for seat in hand.seats for card in hand.cards(seat)]
        assert len(dealt) == len(set(dealt))
        turn, street = hand.turn, hand.street
        want = hand.want
        step(hand, rng, rare)
        if isinstance(want, Act) and hand.turn > turn:
            assert asked != (street, want.seat)
            asked = (street, want.seat)
    assert hand.over
    assert hand.want is None
    assert hand.result is not None
    assert sum(hand.stacks.values()) == total
    assert sum(hand.result.net.values()) == 0


@settings(max_examples=80, deadline=None)
@given(setups(), st.integers(0, 2**32), st.integers(0, 60))
def test_the_inputs_lead_to_the_same_state_again_at_any_place(
    setup: HandSetup, seed: int, steps: int
) -> None:
    rng = random.Random(seed)
    hand = Hand(setup)
    events = [hand.start()]
    for _ in range(steps):
        if hand.over:
            break
        step(hand, rng, 0.05)
    again = Hand.replay(setup, hand.inputs)
    assert state(again) == state(hand)
    as_lists = [[list(x) if isinstance(x, tuple) else x for x in item] for item in hand.inputs]
    assert state(Hand.replay(setup, as_lists)) == state(hand)
    assert Hand(setup).start() == events[0]


@settings(max_examples=80, deadline=None)
@given(setups(), st.integers(0, 2**32), st.integers(0, 25))
def test_what_is_offered_is_accepted_and_everything_else_refused(
    setup: HandSetup, seed: int, steps: int
) -> None:
    hand, rng = under_way(setup, seed, steps, 0.02)
    while not hand.over and not isinstance(hand.want, Act):
        step(hand, rng, 0)
    want = hand.want
    if not isinstance(want, Act):
        return
    offered = choices(want.legal)
    assert offered
    for choice in offered:
        Hand.replay(setup, hand.inputs).act(want.seat, *choice)
    before = state(hand)
    for seat in (*hand.seats, 9):
        for kind in ActionKind:
            for amount in (0, *range(1, 60), want.legal.call, setup.stacks[0]):
                if seat == want.seat and (kind, amount) in offered:
                    continue
                with pytest.raises(Refused) as refused:
                    hand.act(seat, kind, amount)
                assert refused.value.reason.isupper()
                assert refused.value.rule[0].isdigit()
    assert state(hand) == before


@settings(max_examples=60, deadline=None)
@given(setups(), st.integers(0, 2**32))
def test_when_nobody_folds_everyone_has_seven_cards_at_the_showdown(
    setup: HandSetup, seed: int
) -> None:
    rng = random.Random(seed)
    hand = Hand(setup)
    hand.start()
    while not hand.over:
        want = hand.want
        if isinstance(want, Act):
            offered = [c for c in choices(want.legal) if c[0] != ActionKind.FOLD]
            hand.act(want.seat, *rng.choice(offered))
        else:
            step(hand, rng, 0)
    shared = int(hand.community >= 0)
    assert all(len(hand.cards(seat)) + shared == 7 for seat in hand.seats)
