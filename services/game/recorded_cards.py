"""The cards of a recorded hand, and stand-ins for those that nobody saw.

A show makes down cards known that were dealt unseen. What stays unknown is filled with cards that
the record never names. Unknown up cards decide who opens, so their stand-ins are chosen to make
those open who did.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from services.game.boards import RANK_UNIT, high_key, razz_key
from services.game.cards import CARDS
from services.game.phh import RecordedAction, RecordedHand, Word
from services.game.rulebook import Game

CHOICES: Final = 8
"""Ways in which stand-ins for up cards are chosen, tried one after the other."""

_UP_PLACES: Final = range(2, 6)
_Unseen = int | None


class RecordedCards:
    """Every player's cards in the order dealt; `choice` is one of the ways to fill the unknown."""

    def __init__(self, recorded: RecordedHand, choice: int = 0) -> None:
        self._recorded = recorded
        hands, wrong_shows = _hands(recorded)
        self.wrong_shows: Final = wrong_shows
        """Indices of the actions that show a card which the player was not dealt."""
        self._left = {seat: list(cards) for seat, cards in hands.items()}
        mucked = {a.seat for a in recorded.actions if a.word is Word.SHOW and not a.cards}
        shown = {a.seat for a in recorded.actions if a.word is Word.SHOW and a.cards}
        self.unseen: Final = {
            seat for seat, cards in hands.items() if seat not in shown and None in cards
        } | (mucked - shown)
        """Who mucked, or never showed all of his cards: they win nothing at a showdown."""
        self.has_choices: Final = any(None in cards[2:6] for cards in hands.values())
        """Up cards are unknown, so that other choices may do what this one does not."""
        named = {card for cards in hands.values() for card in cards}
        named |= {card for action in recorded.actions for card in action.cards}
        spare = [card for card in range(CARDS) if card not in named]
        turn = choice * len(spare) // CHOICES
        self._spare = spare[turn:] + spare[:turn]
        self.stand_ins: Final[set[int]] = set()
        """Cards given out that the record does not know."""

    def take(self, action: RecordedAction) -> list[_Unseen]:
        """The cards of a deal as far as the record ever tells them."""
        if action.word is not Word.DEAL:
            return list(action.cards)
        left = self._left[action.seat]
        return [left.pop(0) for _ in action.cards]

    def fill(
        self, dealt: Mapping[int, Sequence[_Unseen]], boards: Mapping[int, Sequence[int]], at: int
    ) -> dict[int, list[int]]:
        """The cards dealt to each seat (-1 for a community card) without unknown ones.

        boards: the up cards that the seats had before. at: the index behind the deals.
        """
        filled = {seat: list(cards) for seat, cards in dealt.items()}
        up = {seat: _up_place(len(boards.get(seat, ())), cards) for seat, cards in filled.items()}
        if any(place >= 0 and filled[seat][place] is None for seat, place in up.items()):
            for seat, card in self._fit(filled, boards, up, at).items():
                filled[seat][up[seat]] = card
                if card in self._spare:
                    self._spare.remove(card)
                    self.stand_ins.add(card)
        return {
            seat: [self._next_spare() if card is None else card for card in cards]
            for seat, cards in filled.items()
        }

    def _next_spare(self) -> int:
        card = self._spare.pop()
        self.stand_ins.add(card)
        return card

    def _fit(
        self,
        dealt: Mapping[int, Sequence[_Unseen]],
        boards: Mapping[int, Sequence[int]],
        up: Mapping[int, int],
        at: int,
    ) -> dict[int, int]:
        """Up cards with which those open who did; none if there are none such."""
        opener, next_opener, still_in = _openers(self._recorded.actions, at)
        if opener not in dealt:
            return {}
        sixth = len(boards.get(opener, ())) == 3
        # Seventh street has the boards of sixth: who opens there must be best of who is still in.
        ranked = [opener]
        if sixth and next_opener in dealt and opener not in still_in:
            ranked.append(next_opener)
        score = self._score(third=not any(boards.values()))
        fitting = _Fitting(
            candidates={
                seat: self._spare if dealt[seat][place] is None else [dealt[seat][place] or 0]
                for seat, place in up.items()
            },
            score=lambda seat, card: score((*boards.get(seat, ()), card)),
            ranked=ranked,
            below_last={seat for seat in dealt if seat in still_in},
        )
        return fitting.solve()

    def _score(self, third: bool) -> Callable[[Sequence[int]], int]:
        """What orders boards: who has the most opens."""
        razz = self._recorded.game is Game.RAZZ
        if third and self._recorded.bring_in:
            # The lowest card brings in, the ace high; in razz the highest, the ace low.
            return (lambda up: (up[-1] + 4) % CARDS) if razz else (lambda up: -up[-1])
        key = razz_key if razz else high_key
        return lambda up: key(sum(RANK_UNIT[card >> 2] for card in up))


class _Fitting:
    """Chooses a card for each seat so that `ranked` are best, in order, and others below them."""

    def __init__(
        self,
        candidates: Mapping[int, Sequence[int]],
        score: Callable[[int, int], int],
        ranked: Sequence[int],
        below_last: set[int],
    ) -> None:
        self._candidates = candidates
        self._score = score
        self._ranked = ranked
        self._below_last = below_last

    def solve(self) -> dict[int, int]:
        """A card for each seat; empty if there is no such choice."""
        return next(self._rank({}, []), {})

    def _rank(self, chosen: dict[int, int], scores: list[int]) -> Iterator[dict[int, int]]:
        if len(scores) == len(self._ranked):
            whole = self._others(chosen, scores)
            if whole is not None:
                yield whole
            return
        seat = self._ranked[len(scores)]
        for card in self._candidates[seat]:
            score = self._score(seat, card)
            if card not in chosen.values() and (not scores or score < scores[-1]):
                yield from self._rank({**chosen, seat: card}, [*scores, score])

    def _others(self, chosen: dict[int, int], scores: list[int]) -> dict[int, int] | None:
        chosen = dict(chosen)
        for seat, candidates in self._candidates.items():
            if seat in chosen:
                continue
            bound = scores[-1] if seat in self._below_last else scores[0]
            taken = set(chosen.values())
            for card in candidates:
                if card not in taken and self._score(seat, card) < bound:
                    chosen[seat] = card
                    break
            else:
                return None
        return chosen


def _hands(recorded: RecordedHand) -> tuple[dict[int, list[_Unseen]], set[int]]:
    wrong_shows: set[int] = set()
    hands: dict[int, list[_Unseen]] = {}
    for action in recorded.actions:
        if action.word is Word.DEAL:
            hands.setdefault(action.seat, []).extend(action.cards)
    shared = {card for a in recorded.actions if a.word is Word.BOARD for card in a.cards}
    for at, action in enumerate(recorded.actions):
        if action.word is Word.SHOW and action.cards:
            shown = [card for card in action.cards if card is None or card not in shared]
            if not _learn(hands.get(action.seat, []), shown):
                wrong_shows.add(at)
    return hands, wrong_shows


def _learn(hand: list[_Unseen], shown: Sequence[_Unseen]) -> bool:
    """Fill in what a show makes known: by its place in the order dealt, else wherever a card is
    missing. False if it does not fit the cards dealt.
    """
    if len(shown) <= len(hand) and all(
        None in (old, new) or old == new for old, new in zip(hand, shown, strict=False)
    ):
        for place, card in enumerate(shown):
            hand[place] = card if hand[place] is None else hand[place]
        return True
    fresh = [card for card in shown if card is not None and card not in hand]
    # Down cards first: a card that lay open was seen by everybody.
    places = sorted(
        (place for place, card in enumerate(hand) if card is None),
        key=lambda place: place in _UP_PLACES,
    )
    if len(fresh) > len(places):
        return False
    for place, card in zip(places, fresh, strict=False):
        hand[place] = card
    return True


def _openers(actions: Sequence[RecordedAction], at: int) -> tuple[int, int, set[int]]:
    """Who acts first from `at` on, who acts first after the deals that come next, and who gets
    cards in them; -1 for nobody.
    """
    opener = next_opener = -1
    still_in: set[int] = set()
    for action in actions[at:]:
        if action.word in (Word.COMMENT, Word.SHOW):
            continue
        if action.word in (Word.DEAL, Word.BOARD):
            if next_opener >= 0:
                break
            if opener < 0:
                return -1, -1, set()
            still_in.add(action.seat)
        elif opener < 0:
            opener = action.seat
        elif still_in and next_opener < 0:
            next_opener = action.seat
    return opener, next_opener, still_in


def _up_place(up_before: int, cards: Sequence[_Unseen]) -> int:
    """Which of the cards lies open: the third of third street, the one of fourth to sixth; -1 if
    none does.
    """
    if len(cards) == 3:
        return 2
    return 0 if len(cards) == 1 and 0 < up_before < len(_UP_PLACES) else -1
