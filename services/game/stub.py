"""The undealt cards, by their positions in the deck: nobody here knows what they are."""

from typing import Final

from services.game.cards import CARDS
from services.game.rulebook import ShortDeck
from services.game.wants import Deal

COMMUNITY_SLOT: Final = (-1, True)

_POSITIONS: Final = tuple(range(CARDS))


STUB_FIELDS: Final = ("burn_cards", "burned", "next", "short_deck")


class Stub:
    """How far the deck has been dealt, and which positions were burned."""

    __slots__ = STUB_FIELDS

    def __init__(self, burn_cards: bool, short_deck: ShortDeck) -> None:
        self.burn_cards: bool = burn_cards
        self.short_deck: ShortDeck = short_deck
        self.next: int = 0
        """Position of the top card."""
        self.burned: list[int] = []
        """Positions of the burned cards."""

    def ordinary(self, slots: tuple[tuple[int, bool], ...], street: int) -> Deal:
        """The cards off the top, after a burn where the house burns; none on third street."""
        return self._off_the_top(slots, 1 if self.burn_cards and street > 3 else 0)

    def seventh(self, slots: tuple[tuple[int, bool], ...]) -> Deal:
        """The last cards, by the rules for a short deck (docs/rules.md, 3, not enough cards).

        `slots` are the players who still lack theirs. Under `tda` the stub but for its last card
        may be dealt first; the others are then still to come, and this is asked again.
        """
        need, left, burns = len(slots), CARDS - self.next, len(self.burned)
        if left >= need + (1 if self.burn_cards else 0):
            return self.ordinary(slots, 7)
        if self.short_deck is ShortDeck.TDA:
            return self._tda(slots)
        if self.burn_cards and left == need:
            return self._off_the_top(slots, 0)
        if self.short_deck is ShortDeck.COMMUNITY:
            return self._off_the_top((COMMUNITY_SLOT,), 0)
        if left + burns >= need:
            stub = tuple(range(self.next, CARDS))
            return Deal(slots, 0, tuple(range(need)), stub + tuple(self.burned))
        return Deal((COMMUNITY_SLOT,), 0, (0,), tuple(self.burned))

    def dealt(self, deal: Deal) -> None:
        """The cards of a Deal are out."""
        if not deal.reshuffle:
            if deal.burn:
                self.burned += range(self.next, self.next + deal.burn)
            self.next += deal.burn + len(deal.cards)

    def _off_the_top(self, slots: tuple[tuple[int, bool], ...], burn: int) -> Deal:
        start = self.next + burn
        return Deal(slots, burn, _POSITIONS[start : start + len(slots)])

    def _tda(self, slots: tuple[tuple[int, bool], ...]) -> Deal:
        """TDA RP-10H: all but the last card of the stub are dealt; that one and the burns are
        mixed, one is burned (unless every card is needed), the rest of the players get theirs. If
        even so there are not enough, nobody gets one and the mixed cards give one for all."""
        need, left, burns = len(slots), CARDS - self.next, len(self.burned)
        mixed = (CARDS - 1, *self.burned)
        if left + burns < need:
            return Deal((COMMUNITY_SLOT,), 1, (1,), mixed)
        if left > 1:
            return self._off_the_top(slots[: left - 1], 0)
        burn = 1 if len(mixed) > need else 0
        return Deal(slots, burn, tuple(range(burn, burn + need)), mixed)
