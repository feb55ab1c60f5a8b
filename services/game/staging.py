"""A recorded hand staged: what a real table needs so that it can be played there again.

Pure. Decks, the button's draw, players' moves in order, and what must come out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from services.game.cards import CARDS
from services.game.hand import Deal, HandSetup, Showdown
from services.game.phh import RakeTerms, RecordedAction, RecordedHand, Word
from services.game.replay import Move, Replay, Replayed, best_replay
from services.game.rulebook import BuyIn, RakeOnThird, Rulebook, RulebookError
from services.game.showdown import divide

MOVES: Final = (Word.FOLD, Word.CHECK_OR_CALL, Word.BRING_IN, Word.WAGER)
"""Actions of a record that a player makes in his turn."""

Deals = Sequence[tuple[Deal, tuple[int, ...]]]

_STRIDES: Final = (1, 5, 7, 11, 13, 17, 19, 23)


class UnstageableError(ValueError):
    """Why a recorded hand cannot be played at a table."""


@dataclass(frozen=True, slots=True)
class Staging:
    """Everything that a table, its shuffler and its players need."""

    setup: HandSetup
    """Who sits where with how much, for what; the button's seat comes from `draw`."""
    rulebook: Rulebook
    """That of the setup as tables take it: the stake is its own, any buy-in will do."""
    draw: tuple[int, ...]
    """A deck for the button's draw: of one card for each seat its own is the highest."""
    deck: tuple[int, ...]
    reshuffled: tuple[int, ...]
    """The order of the cards that are shuffled anew on seventh street; empty: none are."""
    moves: tuple[Move, ...]
    refused: Mapping[int, tuple[RecordedAction, ...]]
    """What must be refused in place of a move, by its `turn`."""
    rake: RakeTerms | None
    """By which exactly the recorded rake is due; None for none."""
    expected: Replayed
    """What must come out."""


def stage(recorded: RecordedHand, *, rulebook: str = "", lenient_amounts: bool = False) -> Staging:
    """Raises UnstageableError where the record differs from the rules, or no rulebook can say what
    its room does; PhhError as `replay` does.
    """
    run = best_replay(recorded, rulebook, lenient_amounts)
    if not run.replayed.ok:
        raise UnstageableError(run.replayed.error)
    if not run.by_rule:
        raise UnstageableError("an amount by a rule of the room's own, which no table offers")
    habits = run.reading.habits
    if habits.odd_unit_to_low or habits.rake_from_main_pot:
        raise UnstageableError("a habit of its room that no rulebook has")
    setup = run.reading.setup
    deck, reshuffled = _decks(_losing(run))
    return Staging(
        setup=setup,
        rulebook=_own_stake(setup),
        draw=_draw(setup),
        deck=deck,
        reshuffled=reshuffled,
        moves=tuple(run.moves),
        refused=_refused(recorded, run.moves),
        rake=_rake(recorded, run.replayed, setup.rulebook),
        expected=run.replayed,
    )


def rulebook_toml(rulebook: Rulebook) -> str:
    """The text of a rulebook file with these settings."""
    mapping = rulebook.to_mapping()
    stakes = mapping.pop("stakes")
    clock = ", ".join(f"{name} = {value}" for name, value in mapping.pop("clock").items())
    lines = [*_lines(mapping), f"clock = {{ {clock} }}"]
    for stake in stakes:
        lines += ["[[stakes]]", *_lines(stake)]
    return "\n".join(lines) + "\n"


def _lines(settings: Mapping[str, Any]) -> Iterator[str]:
    # JSON writes texts, numbers, true and false as TOML has them.
    return (f"{name} = {json.dumps(value)}" for name, value in settings.items())


def _refused(
    recorded: RecordedHand, moves: Sequence[Move]
) -> Mapping[int, tuple[RecordedAction, ...]]:
    """Moves that are tried, by the decision they are tried in. Who is protected out of time makes
    no action, so that what is tried there is tried behind him.
    """
    actions = dict(enumerate(recorded.actions))
    last = {m.at: m.turn for m in moves if m.at in actions and actions[m.at].word in MOVES}
    return {
        turn: tuple(
            trial.action
            for trial in recorded.illegal
            if trial.at == at and trial.action.word in MOVES
        )
        for at, turn in last.items()
    }


def _own_stake(setup: HandSetup) -> Rulebook:
    stake = {**asdict(setup.stake), "buy_in_min": 1, "buy_in_max": 0}
    stake = {name: value for name, value in stake.items() if value is not None}
    try:
        return setup.rulebook.with_house(buy_in=str(BuyIn.OPERATOR), stakes=[stake])
    except RulebookError as error:
        raise UnstageableError(str(error.faults[0])) from None


def _draw(setup: HandSetup) -> tuple[int, ...]:
    highest = CARDS - 1
    others = iter(range(highest))
    cards = [highest if seat == setup.button else next(others) for seat in setup.seats]
    return (*cards, *others)


def _decks(deals: Deals) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The deck, and the order of what is shuffled anew: each card where it was dealt from, cards
    that nobody got in between.
    """
    places: dict[int, int] = {}
    anew: dict[int, int] = {}
    mixed: tuple[int, ...] = ()
    for want, cards in deals:
        mixed = want.reshuffle or mixed
        (anew if want.reshuffle else places).update(zip(want.positions, cards, strict=True))
    # What comes out of the second deck must be among the cards that go into it.
    free = [place for place in mixed if place not in places]
    places.update(zip(free, anew.values(), strict=False))
    rest = iter(sorted(set(range(CARDS)) - set(places.values())))
    deck = tuple(places[place] if place in places else next(rest) for place in range(CARDS))
    left = iter([deck[place] for place in mixed if deck[place] not in anew.values()])
    return deck, tuple(anew[i] if i in anew else next(left) for i in range(len(mixed)))


def _losing(run: Replay) -> Deals:
    """The deals with such stand-ins for cards that nobody saw that who showed nothing loses."""
    want, result = run.showdown, run.divided
    if want is None or result is None:
        return run.deals
    awards = sorted(result.awards)
    for swapped in _swaps(run, want):
        hands = {
            seat: tuple(swapped.get(card, card) for card in cards)
            for seat, cards in want.hands.items()
        }
        shown = Showdown(want.pots, hands, want.community, want.order, want.button, want.tabled)
        if sorted(divide(shown, run.reading.setup.rulebook).awards) == awards:
            return [
                (deal, tuple(swapped.get(card, card) for card in cards))
                for deal, cards in run.deals
            ]
    raise UnstageableError("a hand that was mucked would have won")


def _swaps(run: Replay, want: Showdown) -> Iterator[Mapping[int, int]]:
    """Other cards for the down cards that nobody saw: none at first, then spread over the rest."""
    yield {}
    unknown = [
        card
        for seat, cards in want.hands.items()
        for card in (*cards[:2], *cards[6:])
        if seat in run.cards.unseen and card in run.cards.stand_ins
    ]
    dealt = {card for _, cards in run.deals for card in cards}
    pool = [card for card in range(CARDS) if card not in dealt or card in unknown]
    for stride in _STRIDES:
        for start in range(len(pool)):
            chosen = [pool[(start + stride * i) % len(pool)] for i in range(len(unknown))]
            if len(set(chosen)) == len(unknown):
                yield dict(zip(unknown, chosen, strict=True))


def _rake(recorded: RecordedHand, replayed: Replayed, rules: Rulebook) -> RakeTerms | None:
    """Terms by which the rake is due: the record's own, else so much for just this pot."""
    if not replayed.rake:
        return None
    terms = recorded.rake_terms
    if terms is None:
        total = sum(pot.amount for pot in replayed.pots)
        return RakeTerms(per_full=total, units=replayed.rake)
    if terms.percent * 100 % 1:
        raise UnstageableError(f"a rake of {terms.percent} %, finer than schedules are")
    on_third = terms.no_rake_on_third or rules.rake_on_third_street is RakeOnThird.NO
    return replace(terms, no_rake_on_third=on_third)
