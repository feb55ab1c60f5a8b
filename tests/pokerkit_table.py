"""A table of PokerKit beside ours: the same seats, stacks and cards, the same actions.

PokerKit is an independent engine for the rules that both can express: no big bets on fourth, one
bet and three raises without exception, ties by position, a remainder whole to the first.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Final

from pokerkit import (
    Automation,
    FixedLimitRazz,
    FixedLimitSevenCardStud,
    FixedLimitSevenCardStudHighLowSplitEightOrBetter,
    Mode,
)

from services.game.cards import card_name
from services.game.rulebook import Game, Rulebook, Stake, shipped

GAMES: Final = {
    Game.HIGH: FixedLimitSevenCardStud,
    Game.HI_LO: FixedLimitSevenCardStudHighLowSplitEightOrBetter,
    Game.RAZZ: FixedLimitRazz,
}
AUTOMATIONS: Final = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)
HOUSE: Final = {
    "fourth_street_pair": False,
    "cap_lifted": "never",
    "all_in_face_up": False,
    "odd_chip_remainder": "all_to_first",
}


def shared_rulebook(game: Game) -> Rulebook:
    """The house rules that PokerKit plays by."""
    return shipped("modern").with_house(game=str(game), **HOUSE)


class PokerKitTable:
    """One hand. Seat 0 is the nearest to the left of the button."""

    def __init__(self, game: Game, stake: Stake, stacks: Sequence[int]) -> None:
        # Unknown burn cards and folds that a check would have saved are only warned of.
        warnings.simplefilter("ignore", UserWarning)
        kind: Any = GAMES[game]
        self.state: Any = kind.create_state(
            AUTOMATIONS,
            True,
            stake.ante,
            stake.bring_in,
            stake.small_bet,
            stake.big_bet,
            tuple(stacks),
            len(stacks),
            mode=Mode.CASH_GAME,
        )

    def deal(self, slots: Sequence[tuple[int, bool]], cards: Sequence[int]) -> None:
        """Cards to seats, a burn before them from fourth street on."""
        if self.state.can_burn_card("??"):
            self.state.burn_card("??")
        dealt: dict[int, str] = {}
        for (seat, _), card in zip(slots, cards, strict=True):
            dealt[seat] = dealt.get(seat, "") + card_name(card)
        for seat, hand in dealt.items():
            self.state.deal_hole(hand, seat)

    @property
    def actor(self) -> int | None:
        """The seat to act; None where nobody is."""
        actor: int | None = self.state.actor_index
        return actor

    def offers(self) -> tuple[bool, int, int, int]:
        """What the actor may do: (fold, chips to call, chips of the bring-in, wager to); 0 for what
        he may not.
        """
        state = self.state
        return (
            state.can_fold(),
            state.checking_or_calling_amount or 0,
            state.effective_bring_in_amount or 0,
            state.min_completion_betting_or_raising_to_amount or 0,
        )

    def show_all(self) -> None:
        """Everybody still in turns up his cards: pots stay as they are, whoever loses them."""
        while self.state.can_show_or_muck_hole_cards():
            self.state.show_or_muck_hole_cards(True)

    @property
    def stacks(self) -> list[int]:
        """Chips behind, by seat."""
        return list(self.state.stacks)
