"""Why: the rule behind what happens in a hand, in sentences that name their sections.

Pure: these functions read a hand, or a showdown, and change nothing. Seats are players, p1 in seat
0. Cards come through a `CardNames`, since of a recorded hand not all of them are known.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from services.game.boards import RANK_UNIT, high_key, razz_key
from services.game.cards import CARDS
from services.game.events import HIGH, LOW, WHOLE
from services.game.hand import (
    Act,
    ActionKind,
    Deal,
    Hand,
    Refused,
    Showdown,
    ShowdownResult,
)
from services.game.pots import Pot
from services.game.ranking import ace_to_five, deuces_wild, high
from services.game.ranking.best_five import equal_fives, sorted_low
from services.game.refusals import not_offered
from services.game.rulebook import (
    CapLifted,
    Game,
    OddChipHigh,
    OddChipLow,
    OddChipRemainder,
    Reopens,
    Rulebook,
    ShortDeck,
    TieBreak,
    TimeOut,
)
from services.game.showdown import Side, sides_of

RULES: Final[Mapping[str, str]] = {
    "1 seats": "2 to 8 seats",
    "1 ante": "**Ante**",
    "2 cards": "52 cards, no joker",
    "2 hands": "Best five of seven",
    "2 eight or better": "**Eight or better**",
    "2 razz": "**Razz**",
    "2 deuces wild": "**Deuces wild**",
    "3 streets": "| street | dealt | who opens | size |",
    "3 visible hands": "**Visible hands**",
    "3 opener": "**Opener**",
    "3 acting": "**Acting**",
    "3 amounts": "**Amounts on the wire**",
    "3 bring-in": "**Bring-in**",
    "3 private round": "**Private round**",
    "3 steps": "**Steps, cap, short all-ins.**",
    "3 cap": "**Cap**",
    "3 price": "**Price**",
    "3 fourth-street pair": "**Fourth-street pair**",
    "3 burns": "**Burns**",
    "3 short deck": "**Not enough cards on seventh street**",
    "4 all-in": "A player who cannot match is all-in",
    "4 side pots": "Exactly: total of a player",
    "4 one player": "A layer that only one player can claim",
    "5 time-out": "`all_in_if_invested`",
    "5 leaving": "A player who leaves in the middle of a hand",
    "6 showing": "Shows first",
    "6 mucking": "Mucking is allowed only",
    "6 tabled": "`all_in_face_up`",
    "6 showdown": "The first to show must show",
    "6 uncontested": "A player who wins because everyone else folded",
    "6 equal hands": "Equal hands split the pot equally",
    "6 odd chips": "**Odd chips**",
    "6 side pots": "Each side pot is split by itself",
    "7 rake": "A rulebook names a rake **schedule**",
    "7 shares": "Rake comes off each pot **before** it is divided",
}
"""Rules that reasons and refusals cite: section of docs/rules.md, and a name of ours for the rule,
with the words that it begins with there.
"""

CardNames = Callable[[Sequence[int]], str]
"""Letters of cards; "??" for one that nobody knows."""

_VERBS: Final = {
    ActionKind.BET: "bet",
    ActionKind.COMPLETE: "complete to",
    ActionKind.RAISE: "raise to",
}


class Reason(NamedTuple):
    """A sentence, and the rule behind it."""

    text: str
    rule: str = ""
    """One of `RULES`; empty where there is nothing to rule."""
    code: str = ""
    """Machine-readable reason of what is refused or closed: "CAP_REACHED"."""


class Steps(NamedTuple):
    """A round as a decision finds it; what a wager counts as depends on it."""

    full: int
    wagers: int
    two_sizes: bool


def player(seat: int) -> str:
    """The player of a seat: p1 has seat 0."""
    return f"p{seat + 1}"


def players(seats: Collection[int]) -> str:
    """Several players: "p1, p2 and p4"."""
    *others, last = [player(seat) for seat in sorted(seats)]
    return f"{', '.join(others)} and {last}" if others else last


def steps_of(hand: Hand) -> Steps:
    """The running round."""
    return Steps(hand.betting.full, hand.betting.wagers, hand.betting.two_sizes)


# Forced steps, and who begins


def why_antes(hand: Hand, posted: Mapping[int, int]) -> Iterator[Reason]:
    """The antes by seat; a short one is all its player has."""
    ante = hand.setup.stake.ante
    whole = [seat for seat, amount in posted.items() if amount == ante]
    if whole:
        yield Reason(f"ante of {ante} each: {players(whole)}", "1 ante")
    for seat, amount in posted.items():
        if amount < ante:
            text = f"{player(seat)} posts {amount} of the ante of {ante}, all he has"
            yield Reason(text, "1 ante")


def why_first(hand: Hand, names: CardNames) -> Reason | None:
    """Why the player who is asked begins; None where he acts after others."""
    betting, want = hand.betting, hand.want
    if not isinstance(want, Act):
        return None
    if betting.duty >= 0:
        return _why_brings_in(hand, want, names)
    return _why_opens(hand, want, names) if betting.first < 0 else None


def _why_brings_in(hand: Hand, want: Act, names: CardNames) -> Reason:
    holder = hand.seats[hand.betting.bring_in_card]
    door = hand.up_cards(holder)[0]
    razz = hand.setup.rulebook.game is Game.RAZZ
    text = f"{player(holder)} has the {'highest' if razz else 'lowest'} door card, {names([door])}"
    if any(hand.up_cards(seat)[0] >> 2 == door >> 2 for seat in _standing(hand) if seat != holder):
        text += f", by its suit the {'highest' if razz else 'lowest'} of its rank"
    if want.seat == holder:
        return Reason(f"{text}: he brings in", "3 bring-in")
    text += f", and does not bring in: the duty is {player(want.seat)}'s, the next who has chips"
    return Reason(text, "3 price")


def _why_opens(hand: Hand, want: Act, names: CardNames) -> Reason:
    standing, shared = _standing(hand), hand.boards.shared
    best = hand.seats[hand.boards.best(hand.betting.standing)]
    boards = {seat: (*hand.up_cards(seat), *shared) for seat in standing}
    key = razz_key if hand.setup.rulebook.game is Game.RAZZ else high_key
    keys = {seat: key(sum(RANK_UNIT[card >> 2] for card in boards[seat])) for seat in standing}
    equal = [seat for seat in standing if seat != best and keys[seat] == keys[best]]
    kind = "lowest" if hand.setup.rulebook.game is Game.RAZZ else "best"
    text = f"{player(best)} has the {kind} visible hand, {names(boards[best])}"
    rule = "3 private round" if hand.street == 3 else "3 opener"
    if equal:
        rule = "3 visible hands"
        by_suit = hand.setup.rulebook.first_to_act_tie is TieBreak.SUIT
        what = "has the higher suit" if by_suit else "is nearer to the left of the button"
        text += f", equal to that of {players(equal)}, but he {what}"
    if hand.community >= 0:
        counts = "counts" if shared else "does not count"
        text += f" (the community card {counts})"
    if want.seat == best:
        return Reason(f"{text}: he opens", rule)
    return Reason(f"{text}; he cannot act, {player(want.seat)} is the next who can", "3 opener")


def why_seventh(hand: Hand, want: Deal, burned: int, dealt: int) -> Reason | None:
    """What is done because seventh street lacks cards; None where it does not.

    burned, dealt: cards so far.
    """
    rules = hand.setup.rulebook
    entitled, stub = len(_standing(hand)), CARDS - burned - dealt
    if stub >= entitled + (1 if rules.burn_cards else 0):
        return None
    text = f"{stub} cards are left for {entitled} players"
    if rules.burn_cards:
        text = f"{text}, {burned} were burned"
    if not want.reshuffle:
        done = "one is turned up for all" if want.cards[0][0] < 0 else "dealt without a burn"
    elif rules.short_deck is ShortDeck.TDA:
        done = "the last card and the burns are mixed"
    elif want.cards[0][0] < 0:
        done = "even so too few: the burned cards are shuffled and one is turned up for all"
    else:
        done = "burned cards and stub are shuffled together"
    return Reason(f"{text}: {done}", "3 short deck")


# A decision: price, amounts, and what is closed


def decision(hand: Hand) -> Iterator[Reason]:
    """What the player to act may do, and why no more and no less."""
    want = hand.want
    if not isinstance(want, Act):
        return
    yield Reason(f"{player(want.seat)} may {_options(want)}", "3 acting")
    price = _price(hand, want)
    if price is not None:
        yield price
    yield from _amounts(hand, want) if want.legal.wagers else _closed(hand, want)


def _options(want: Act) -> str:
    legal = want.legal
    options = [f"bring in {legal.bring_in}"] if legal.bring_in else []
    options += ["fold"] if legal.fold else []
    options += ["check"] if legal.check else []
    options += [f"call {legal.call}"] if legal.call else []
    if legal.wagers:
        verb = _VERBS[ActionKind(legal.wager_kind)]
        options.append(f"{verb} {' or '.join(str(wager) for wager in legal.wagers)}")
    *others, last = options
    text = f"{', '.join(others)} or {last}" if others else f"only {last}"
    return text if legal.fold else f"{text}, but not fold"


def _price(hand: Hand, want: Act) -> Reason | None:
    """Why a call or a bring-in is not what stands against the player, if it is not."""
    betting, legal = hand.betting, want.legal
    stack, paid = hand.stacks[want.seat], hand.bets[want.seat]
    wanted = hand.setup.stake.bring_in if legal.bring_in else betting.to - paid
    asked = legal.bring_in or legal.call
    if asked < wanted and asked == stack:
        return Reason(f"{asked} is all he has of {wanted}: he would be all-in", "4 all-in")
    if asked < wanted:
        most = paid + asked
        text = f"{asked}, not {wanted}: no opponent still in has more than {most} in or can have"
        return Reason(text, "3 price")
    if legal.call and betting.third and betting.holder < 0 and betting.to == betting.bring_in:
        return Reason(
            f"the price is the bring-in of {betting.to}, though less was posted", "3 price"
        )
    return None


def _amounts(hand: Hand, want: Act) -> Iterator[Reason]:
    betting, legal = hand.betting, want.legal
    stack = hand.stacks[want.seat]
    if legal.bring_in:
        [wager] = legal.wagers
        what = "a full small bet" if wager == betting.small else f"all-in, {wager} being all he has"
        yield Reason(f"instead of the bring-in he may open for {what}", "3 bring-in")
        return
    if betting.wagers >= betting.cap:
        lifted = hand.setup.rulebook.cap_lifted
        began = "began the round" if lifted is CapLifted.ROUND_BEGAN_TWO else "are in the hand"
        yield Reason(f"{betting.cap} wagers have been made, but only two {began}: no cap", "3 cap")
    first = betting.full + betting.size
    if legal.wagers[0] < first:
        text = f"{legal.wagers[0]} is all he has; a whole wager is to {first}"
        yield Reason(text, "3 steps")
    elif betting.two_sizes:
        sizes = [_sum(betting.full, size) for size in (betting.small, betting.big)]
        text = f"an open pair, no big wager yet: {' or '.join(sizes)}"
        if legal.wagers[-1] < betting.full + betting.big:
            text += f", of which he has {stack}"
        yield Reason(text, "3 fourth-street pair")
    elif betting.full:
        text = f"{first} is the last full wager of {betting.full}, and {betting.size} more"
        yield Reason(text, "3 steps")
    else:
        bet = "big" if betting.size == betting.big else "small"
        yield Reason(f"{first} is the {bet} bet: there was no full wager yet", "3 steps")


def _sum(full: int, size: int) -> str:
    return f"{full} + {size}" if full else str(size)


def _closed(hand: Hand, want: Act) -> Iterator[Reason]:
    refused = not_offered(want.legal, want.legal.wager_kind, 1, hand.to)
    reason = why_refused(hand, refused)
    yield reason._replace(text=f"no wager: {reason.text}")


def why_refused(hand: Hand, refused: Refused) -> Reason:
    """A refusal in the words of this hand."""
    want, betting, text = hand.want, hand.betting, str(refused)
    if isinstance(want, Act):
        faces = betting.to - hand.bets[want.seat]
        match refused.reason:
            case "NOT_YOUR_TURN":
                text = f"{player(want.seat)} is to act"
            case "CAP_REACHED":
                text = f"the bet and {betting.cap - 1} raises of the round have been made"
            case "NOT_REOPENED":
                text = f"he has acted, and the {faces} against him are too little of {betting.size}"
            case "NOBODY_CAN_CALL":
                text = f"no opponent still in can put in more than {betting.to}"
            case "STACK_TOO_SHORT":
                asked = want.legal.bring_in or faces
                text = f"he has {hand.stacks[want.seat]}, which is not above the {asked} to put in"
    return Reason(text, refused.rule, refused.reason)


# What players do


def why_bring_in(hand: Hand, seat: int, amount: int) -> Reason:
    """The bring-in that was posted."""
    text = f"{player(seat)} brings in {amount}"
    bring_in = hand.setup.stake.bring_in
    if amount < bring_in:
        return Reason(f"{text} of {bring_in}; the others face {bring_in}", "3 price")
    if bring_in == hand.setup.stake.small_bet:
        return Reason(f"{text}, which is the bet", "3 steps")
    return Reason(text, "3 bring-in")


def why_wager(hand: Hand, before: Steps, seat: int, did: str, to: int) -> Reason:
    """What a wager to this total counted as. did: "raises". before: the round at the decision."""
    betting = hand.betting
    text = f"{player(seat)} {did} {to}"
    above, size = to - before.full, betting.size
    short = above < size
    half = hand.setup.rulebook.short_all_in_reopens_at is Reopens.HALF
    if betting.wagers == before.wagers:
        bound = f"half of {size}" if half else f"{size}"
        text = f"{text}: {above} above {before.full} is less than {bound}, only a price to call"
        return Reason(text, "3 steps")
    number = betting.wagers - 1
    text = f"{text}: raise {number} of {betting.cap - 1}" if number else f"{text}: the bet"
    if number >= betting.cap:
        text = f"{player(seat)} {did} {to}: raise {number}, without a cap"
    if short:
        text = f"{text}; {above} above {before.full} is half of {size} or more and counts as full"
    if before.two_sizes and not betting.two_sizes:
        return Reason(f"{text}; it is big, so that only big ones follow", "3 fourth-street pair")
    return Reason(text, "3 steps")


def why_time_out(hand: Hand, seat: int, protected: bool, what: str) -> Reason:
    """What followed from running out of time. what: "checks"."""
    policy = hand.setup.rulebook.time_out
    text = f"{player(seat)} runs out of time"
    if protected:
        text = f"{text} with more than the ante in: he keeps his cards and plays for what is in"
    elif what == "brings in":
        text = f"{text}: the bring-in is posted for him"
    elif policy is TimeOut.ALL_IN_IF_INVESTED and hand.put_in[seat] <= hand.setup.stake.ante:
        text = f"{text} with no more than the ante in: he is folded"
    elif policy is TimeOut.ALL_IN_IF_INVESTED:
        text = f"{text} and is protected no more today: he {what}"
    else:
        text = f"{text}: he checks, it is free" if what == "checks" else f"{text}: he is folded"
    return Reason(f"{text} ({policy})", "5 time-out")


def why_no_more_betting(hand: Hand) -> Reason:
    """Betting is over for the hand though there are players in it."""
    can_act = [seat for seat in _standing(hand) if seat not in hand.all_in]
    who = f"only {player(can_act[0])}" if can_act else "nobody"
    return Reason(
        f"{who} can act and nothing is owed: no more betting, the cards run out", "3 price"
    )


# Pots and rake


def why_returned(hand: Hand, seat: int, amount: int) -> Reason:
    """The part of a wager that went back; call it once it has."""
    second = hand.put_in[seat]
    text = f"{amount} go back to {player(seat)}: {second + amount} in all against {second}"
    return Reason(f"{text}, the next highest total", "4 side pots")


def pot_names(count: int) -> list[str]:
    """What to call so many pots."""
    return ["main pot", *(f"side pot {number}" for number in range(1, count))][:count]


def why_pots(hand: Hand, pots: Sequence[Pot]) -> Iterator[Reason]:
    """Where each pot comes from and who can win it; the hand before it is settled."""
    put_in, standing = hand.put_in, _standing(hand)
    if len(standing) == 1:
        text = f"{player(standing[0])} alone has not folded: the {pots[0].amount} are his"
        yield Reason(text, "6 uncontested")
        return
    floor = 0
    for name, pot in zip(pot_names(len(pots)), pots, strict=True):
        level = min(put_in[seat] for seat in pot.seats)
        paying = [seat for seat in standing if put_in[seat] > floor]
        whole = (level - floor) * len(paying)
        text = f"{name} {pot.amount}: {level - floor} each of {players(paying)}"
        if pot.amount > whole:
            text += f", {pot.amount - whole} of those who folded"
        if len(pot.seats) == 1:
            yield Reason(f"{text}; nobody else can claim it", "4 one player")
        else:
            yield Reason(f"{text}; {players(pot.seats)} can win it", "4 side pots")
        floor = level


def why_shares(pots: Sequence[Pot], shares: Sequence[int], from_main_pot: bool) -> Reason | None:
    """How a rake falls on several pots; None where there is nothing to share."""
    if not sum(shares) or len(pots) < 2:
        return None
    text = f"of the rake {' + '.join(str(share) for share in shares)} from the pots"
    if from_main_pot:
        return Reason(f"{text}: this room takes it from the main pot first")
    return Reason(f"{text}: by their size, rounded down, then one each, main pot first", "7 shares")


# Showdown


def why_shows_first(hand: Hand, seat: int) -> Reason:
    """Why a player begins to show."""
    betting = hand.betting
    if betting.last_wager >= 0:
        why = "made the last wager of the last round"
    elif betting.first >= 0:
        why = "acted first in the last round, where nobody bet"
    else:
        why = "has the best visible hand, as nobody could act"
    return Reason(f"{player(seat)} {why}: he shows first, the others clockwise", "6 showing")


def why_divided(
    showdown: Showdown, result: ShowdownResult, rules: Rulebook, names: CardNames
) -> Iterator[Reason]:
    """Who wins which part of each pot with what, and where odd chips go. Pots are net of rake."""
    sides = sides_of(showdown, rules)
    for index, (name, pot) in enumerate(
        zip(pot_names(len(showdown.pots)), showdown.pots, strict=True)
    ):
        won = {part: _won(result, index, part) for part in (WHOLE, HIGH, LOW)}
        if won[HIGH] or won[LOW]:
            halves = sum(won[HIGH].values()), sum(won[LOW].values())
            yield _why_halved(name, pot, *halves)
        elif rules.game is Game.HI_LO:
            text = f"{name}: none of its players has a low of eight or better, the high takes all"
            yield Reason(text, "2 eight or better")
        for part, side in ((WHOLE, sides[0]), (HIGH, sides[0]), (LOW, sides[-1])):
            if won[part]:
                what = {WHOLE: name, HIGH: f"{name}, high", LOW: f"{name}, low"}[part]
                low = part == LOW or rules.game is Game.RAZZ
                yield from _why_part(what, pot, side, low, won[part], showdown, rules, names)


def _why_halved(name: str, pot: Pot, high_half: int, low_half: int) -> Reason:
    text = f"{name}: of {pot.amount} the high half is {high_half}, the low half {low_half}"
    if high_half < low_half:
        return Reason(f"{text}: this room gives the odd unit to the low half")
    odd = pot.amount % 2 == 1
    return Reason(f"{text}, as the high gets the odd unit" if odd else text, "6 odd chips")


def _why_part(
    what: str,
    pot: Pot,
    side: Side,
    low: bool,
    won: Mapping[int, int],
    showdown: Showdown,
    rules: Rulebook,
    names: CardNames,
) -> Iterator[Reason]:
    best = max(side.ranks.get(seat, 0) for seat in pot.seats)
    winners = [seat for seat in pot.seats if side.ranks.get(seat) == best]
    rule = _ranking_rule(rules, low)
    share, odd = divmod(sum(won.values()), len(winners))
    if len(winners) == 1:
        text = f"{what}: {player(winners[0])} wins {share} with {side.name(best)}"
        yield Reason(text, rule)
        return
    text = f"{what}: {players(winners)} tie with {side.name(best)}, {share} each"
    yield Reason(text, "6 equal hands")
    if odd:
        lucky = [seat for seat in winners if won.get(seat, 0) > share]
        yield Reason(_why_odd(odd, lucky, winners, low, showdown, rules, names), "6 odd chips")


def _why_odd(
    odd: int,
    lucky: Sequence[int],
    winners: Sequence[int],
    low: bool,
    showdown: Showdown,
    rules: Rulebook,
    names: CardNames,
) -> str:
    setting = rules.odd_chip_low if low else rules.odd_chip_high
    all_to_first = rules.odd_chip_remainder is OddChipRemainder.ALL_TO_FIRST
    how = "all to" if all_to_first else "one each to" if odd > 1 else "to"
    text = f"{odd} left over {how} {players(lucky)}"
    if setting in (OddChipHigh.POSITION, OddChipLow.POSITION):
        return f"{text}: nearest to the left of the button"
    fives = ", ".join(
        f"{player(seat)} {names(_five((*showdown.hands[seat], *showdown.community), low, rules))}"
        for seat in winners
    )
    suit = "higher" if setting in (OddChipHigh.SUIT_HIGH, OddChipLow.SUIT_HIGH) else "lower"
    return f"{text}: the {suit} suit on the top card that plays ({fives})"


def _five(cards: Sequence[int], low: bool, rules: Rulebook) -> Sequence[int]:
    """A choice of five that plays, the deciding card first."""
    if low:
        return sorted_low(equal_fives(cards, ace_to_five)[-1])
    return equal_fives(cards, deuces_wild if rules.wild_deuces else high)[0]


def _ranking_rule(rules: Rulebook, low: bool) -> str:
    if low:
        return "2 razz" if rules.game is Game.RAZZ else "2 eight or better"
    return "2 deuces wild" if rules.wild_deuces else "2 hands"


def _won(result: ShowdownResult, index: int, part: int) -> dict[int, int]:
    return {award[1]: award[2] for award in result.awards if (award[0], award[3]) == (index, part)}


def _standing(hand: Hand) -> list[int]:
    """Who has not folded, clockwise from the left of the button."""
    folded = hand.folded
    return [seat for seat in hand.seats if seat not in folded]
