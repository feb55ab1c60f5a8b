"""What a hand wants, asked of the services: cards, rake, the division of the pots.

An answer that does not fit is a fault and is not taken: the hand still wants what it wanted.
"""

from typing import Final

from doorcard.showdown.v1 import showdown_pb2
from doorcard.shuffler.v1 import shuffler_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.game.cards import CARDS, card_name, parse_card
from services.game.hand import Deal, Hand, Rake, Showdown, ShowdownResult, Want
from services.game.rulebook import OddChipHigh, OddChipLow, OddChipRemainder, ShowdownRule
from services.runtime import failpoints
from services.runtime.errors import Internal
from services.table.draft import money
from services.table.draft.draft import Draft
from services.table.state import views
from services.table.state.state import Deck, RunningHand, SeatFlag, Table

PLAY_MONEY: Final = "XTS"
LEAF_BYTES: Final = 32
"""SHA-256."""

_ODD_HIGH: Final = {
    OddChipHigh.POSITION: showdown_pb2.ODD_CHIP_RULE_POSITION,
    OddChipHigh.SUIT_HIGH: showdown_pb2.ODD_CHIP_RULE_SUIT_HIGH,
}
_ODD_LOW: Final = {
    OddChipLow.POSITION: showdown_pb2.ODD_CHIP_RULE_POSITION,
    OddChipLow.SUIT_LOW: showdown_pb2.ODD_CHIP_RULE_SUIT_LOW,
    OddChipLow.SUIT_HIGH: showdown_pb2.ODD_CHIP_RULE_SUIT_HIGH,
}
_REMAINDERS: Final = {
    OddChipRemainder.ONE_EACH: showdown_pb2.ODD_CHIP_REMAINDER_ONE_EACH,
    OddChipRemainder.ALL_TO_FIRST: showdown_pb2.ODD_CHIP_REMAINDER_ALL_TO_FIRST,
}
_SHOWDOWNS: Final = {
    ShowdownRule.ALL_SHOW: showdown_pb2.SHOWDOWN_RULE_ALL_SHOW,
    ShowdownRule.BEATEN_MAY_MUCK: showdown_pb2.SHOWDOWN_RULE_BEATEN_MAY_MUCK,
}


async def answer(draft: Draft, hand: Hand, want: Want) -> None:
    """Get what the hand wants and feed it. A new deck is only made: its cards come after a commit
    (`draft.go_on`). Raises DoorcardError, and ValueError for an answer that does not fit.
    """
    if isinstance(want, Deal):
        await _deal(draft, hand, want)
    elif isinstance(want, Rake):
        await _rake(draft, hand, want)
    elif isinstance(want, Showdown):
        await _divide(draft, hand, want)


async def _deal(draft: Draft, hand: Hand, want: Deal) -> None:
    running = draft.table.blob.hand
    if running is None:
        raise ValueError("no hand is running")
    deck = running.decks[0]
    if want.reshuffle:
        deck = running.decks[-1]
        if deck.made_from != list(want.reshuffle):
            # Its root is committed and out before a card of it is seen.
            deck, leaves = await _reshuffled(draft, running, want)
            running.decks = [running.decks[0], deck]
            draft.tell(hand=money.committed_deck(deck, leaves))
            draft.go_on = True
            return
    drawn = await draw(draft, deck, running.hand_id, want.positions)
    draft.tell_hand(hand.deal([parse_card(each.card) for each in drawn]), drawn)


async def draw(
    draft: Draft, deck: Deck, hand_id: str, positions: "range | tuple[int, ...]"
) -> list[shuffler_pb2.DrawnCard]:
    """Open positions of a deck, in order, with what proves them beside the deck's leaves."""
    request = shuffler_pb2.DrawRequest(
        sealed_deck=deck.sealed,
        table_id=draft.table.table_id,
        hand_id=hand_id,
        positions=positions,
        without_paths=deck.leaves_told,
    )
    reply: shuffler_pb2.DrawResponse = await draft.ask(
        "shuffler", draft.services.shuffler.Draw, request
    )
    if [each.position for each in reply.cards] != list(positions) or reply.root != deck.root:
        raise ValueError("the shuffler drew other positions, or from another deck")
    return list(reply.cards)


async def _reshuffled(draft: Draft, running: RunningHand, want: Deal) -> tuple[Deck, bytes]:
    request = shuffler_pb2.ReshuffleRequest(
        sealed_deck=running.decks[0].sealed,
        table_id=draft.table.table_id,
        hand_id=running.hand_id,
        positions=want.reshuffle,
    )
    reply: shuffler_pb2.ReshuffleResponse = await draft.ask(
        "shuffler", draft.services.shuffler.Reshuffle, request
    )
    leaves = _leaves(reply.leaves, len(want.reshuffle))
    return Deck(reply.sealed_deck, reply.root, list(want.reshuffle), bool(leaves)), leaves


async def _rake(draft: Draft, hand: Hand, want: Rake) -> None:
    schedule = draft.table.blob.config.rake_schedule
    shares = [0] * len(want.pots)
    if schedule:
        request = wallet_pb2.AssessRakeRequest(
            schedule=wallet_pb2.RakeSchedule.FromString(schedule),
            pots=[views.pot(*each) for each in want.pots],
            dealt_in=want.dealt_in,
            street=want.street,
        )
        failpoints.reach("hand.rake_asked")
        reply: wallet_pb2.AssessRakeResponse = await draft.ask(
            "wallet", draft.services.wallet.AssessRake, request
        )
        failpoints.reach("hand.rake_answered")
        shares = list(reply.shares)
    draft.tell_hand(hand.rake(shares))


async def _divide(draft: Draft, hand: Hand, want: Showdown) -> None:
    failpoints.reach("hand.showdown_asked")
    reply: showdown_pb2.DivideShowdownResponse = await draft.ask(
        "showdown",
        draft.services.showdown.DivideShowdown,
        _showdown_request(draft.table, hand, want),
    )
    failpoints.reach("hand.showdown_answered")
    awards = [
        (each.pot, each.seat, each.amount, views.PARTS.index(each.part), each.hand_name)
        for each in reply.awards
    ]
    reveals = [(each.seat, each.shown, each.hand_name) for each in reply.reveals]
    draft.tell_hand(hand.settle(ShowdownResult(tuple(awards), tuple(reveals))))


def _showdown_request(
    table: Table, hand: Hand, want: Showdown
) -> showdown_pb2.DivideShowdownRequest:
    rulebook = hand.setup.rulebook
    rule = ShowdownRule.ALL_SHOW if want.tabled else rulebook.showdown
    return showdown_pb2.DivideShowdownRequest(
        game=views.GAMES[rulebook.game],
        wild_deuces=rulebook.wild_deuces,
        pots=[views.pot(*each) for each in want.pots],
        hands=[
            showdown_pb2.PlayerHand(
                seat=number, cards=[card_name(card) for card in want.hands[number]]
            )
            for number in want.order
        ],
        community="".join(card_name(card) for card in want.community),
        button=want.button,
        table_seats=table.blob.config.seats,
        odd_chip_high=_ODD_HIGH[rulebook.odd_chip_high],
        odd_chip_low=_ODD_LOW[rulebook.odd_chip_low],
        odd_chip_remainder=_REMAINDERS[rulebook.odd_chip_remainder],
        showdown=_SHOWDOWNS[rule],
        showing=[
            number
            for number in want.order
            if table.blob.seats[number].flags & SeatFlag.SHOWS_BEATEN and want.hands[number]
        ],
    )


async def new_deck(draft: Draft, hand_id: str) -> tuple[Deck, bytes]:
    """A fresh deck and its leaves, bound to the table and the hand. A scripted one is for play
    money only.
    """
    table_id = draft.table.table_id
    reply: shuffler_pb2.CreateDeckResponse = await draft.ask(
        "shuffler",
        draft.services.shuffler.CreateDeck,
        shuffler_pb2.CreateDeckRequest(request_id=hand_id, table_id=table_id, hand_id=hand_id),
    )
    scripted = reply.source == shuffler_pb2.DECK_SOURCE_SCRIPTED
    play_money = draft.table.blob.config.currency == PLAY_MONEY
    if reply.source != shuffler_pb2.DECK_SOURCE_KERNEL and not (scripted and play_money):
        raise Internal("DECK_NOT_FAIR", "the shuffler's deck is not from the kernel's generator")
    leaves = _leaves(reply.leaves, CARDS)
    return Deck(reply.sealed_deck, reply.root, leaves_told=bool(leaves)), leaves


def _leaves(leaves: bytes, cards: int) -> bytes:
    """The leaves of a deck of so many cards; none from a shuffler of an earlier release. Raises
    Internal (DECK_LEAVES_WRONG).
    """
    if leaves and len(leaves) != cards * LEAF_BYTES:
        raise Internal("DECK_LEAVES_WRONG", "the shuffler's deck has not a leaf for each card")
    return leaves
