"""`doorcard rank` and `doorcard equity`: the showdown service's figures without a service."""

import json
import secrets
import time
from collections.abc import Sequence
from typing import Annotated, Any, Final, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from services.game.cards import card_names, parse_cards
from services.game.rulebook import Game
from services.game.showdown import HAND_CARDS, SEATS_MAX
from services.local.paper import paper
from services.showdown.equity import Estimation, Spot, Worth
from services.showdown.evaluation import Order, Ranked, rank_hands
from services.showdown.table_files import share_tables, usual_folder

REFUSED: Final = 2
"""Exit status for cards and settings that make no sense."""

Cards = tuple[int, ...]

_HAND_HELP: Final = 'A hand: "AsKdQh9c7s5d2h", with or without spaces.'


def rank_command(
    hands: Annotated[list[str], typer.Argument(metavar="HAND...", help=_HAND_HELP)],
    order: Annotated[
        Order, typer.Option("--order", help="How: high, or a low, or with deuces wild.")
    ] = Order.HIGH,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Rank hands of five to seven cards, the best first.

    Exit status: 0, or 2 when something is no hand.
    """
    cards = [_hand(text, number, 5, HAND_CARDS) for number, text in enumerate(hands, 1)]
    share_tables(usual_folder(), _tables_of(order))
    ranked = sorted(
        zip(cards, rank_hands(order, cards), strict=True),
        key=lambda each: each[1].rank if each[1] else 0,
        reverse=True,
    )
    if as_json:
        entries = [_ranked_entry(hand, found) for hand, found in ranked]
        typer.echo(json.dumps({"order": order, "hands": entries}))
    else:
        paper().print(_ranked_table(order, ranked))


def equity_command(
    hands: Annotated[
        list[str],
        typer.Argument(
            metavar="HAND HAND...",
            help='What is known of each hand: "AsKd Qh", or "-" for nothing yet.',
        ),
    ],
    game: Annotated[Game, typer.Option(help="What is played for.")] = Game.HIGH,
    wild_deuces: Annotated[bool, typer.Option("--wild-deuces", help="In a high game.")] = False,
    dead: Annotated[str, typer.Option(help="Cards that are out: folded boards, seen burns.")] = "",
    community: Annotated[str, typer.Option(help="The card that is everybody's seventh.")] = "",
    exact_deals: Annotated[
        int, typer.Option(min=0, help="Look at every deal when there are at most so many.")
    ] = 20_000_000,
    standard_error: Annotated[
        float, typer.Option(min=0.00005, max=0.1, help="A sample ends when it is this precise.")
    ] = 0.001,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the sample; the same seed gives the same.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Estimate what hands are worth when all of them go to the showdown.

    Looks at every deal that can follow, or at a random sample of them. Exit status: 0, or 2 when
    the cards make no sense.
    """
    spot = _spot(hands, game, wild_deuces, dead, community)
    order = Order.ACE_TO_FIVE if game is Game.RAZZ else Order.HIGH
    share_tables(usual_folder(), _tables_of(Order.DEUCES_WILD if wild_deuces else order))
    seed = secrets.randbits(32) if seed is None else seed
    estimation = Estimation(
        spot, exact_deals_max=exact_deals, standard_error_max=standard_error, seed=seed
    )
    began_s = time.monotonic()
    _work_out(estimation, Console(stderr=True, quiet=as_json))
    took_s = time.monotonic() - began_s
    if as_json:
        typer.echo(json.dumps(_equity_entry(estimation, seed)))
    else:
        paper().print(_equity_table(estimation, seed, took_s))


def _work_out(estimation: Estimation, console: Console) -> None:
    """Do every part, with a bar where somebody watches."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("every deal" if estimation.exact else "random deals", total=1.0)
        while part := estimation.next_part():
            estimation.add(part())
            bar.update(task, completed=estimation.progress)


def _ranked_table(order: Order, ranked: Sequence[tuple[Cards, Ranked | None]]) -> Table:
    table = Table(title=f"Order: {order}")
    for name, justify in (("", "right"), ("cards", "left"), ("hand", "left"), ("plays", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("class", justify="right")
    place = 0
    before: int | None = -1
    for number, (cards, found) in enumerate(ranked, 1):
        rank = found.rank if found else None
        if rank != before:
            place, before = number, rank
        if found:
            row = (str(place), found.name, _spaced(found.best), str(found.rank))
        else:
            row = ("-", "no low", "", "")
        table.add_row(row[0], _spaced(cards), *row[1:])
    return table


def _ranked_entry(cards: Cards, found: Ranked | None) -> dict[str, Any]:
    return {
        "cards": card_names(cards),
        "qualifies": found is not None,
        "rank": found.rank if found else 0,
        "name": found.name if found else "",
        "best": card_names(found.best) if found else "",
    }


def _equity_table(estimation: Estimation, seed: int, took_s: float) -> Table:
    spot = estimation.spot
    how = "every deal" if estimation.exact else f"random deals, seed {seed}"
    table = Table(title=f"{spot.game}: {estimation.deals:,} deals ({how}), {took_s:.1f} s")
    table.add_column("cards")
    sides = ("high", "low") if spot.game is Game.HI_LO else ()
    for name in ("equity", "whole pot", "part", *sides):
        table.add_column(name, justify="right")
    if not estimation.exact:
        table.add_column("± error", justify="right")
    for hand, worth in zip(spot.hands, estimation.worths(), strict=True):
        row = [worth.equity, worth.whole, worth.part]
        if sides:
            row += [worth.high, worth.low]
        if not estimation.exact:
            row.append(worth.standard_error)
        table.add_row(_spaced(hand) or "-", *[f"{figure:.2%}" for figure in row])
    return table


def _equity_entry(estimation: Estimation, seed: int) -> dict[str, Any]:
    def entry(hand: Cards, worth: Worth) -> dict[str, Any]:
        return {"cards": card_names(hand), **worth._asdict()}

    spot = estimation.spot
    return {
        "game": spot.game,
        "exact": estimation.exact,
        "deals": estimation.deals,
        "deals_possible": spot.deals,
        "seed": None if estimation.exact else seed,
        "players": [
            entry(hand, worth) for hand, worth in zip(spot.hands, estimation.worths(), strict=True)
        ],
    }


def _spot(hands: Sequence[str], game: Game, wild_deuces: bool, dead: str, community: str) -> Spot:
    if not 2 <= len(hands) <= SEATS_MAX:
        _refuse(f"hands: must be 2 to {SEATS_MAX}")
    if wild_deuces and game is not Game.HIGH:
        _refuse("--wild-deuces: in a high game only")
    own = HAND_CARDS - bool(community)
    known = [
        () if text == "-" else _hand(text, number, 0, own) for number, text in enumerate(hands, 1)
    ]
    out = _cards(dead, "--dead")
    shared = _cards(community, "--community")
    if len(shared) > 1:
        _refuse("--community: must be one card")
    everything = [card for cards in (*known, out, shared) for card in cards]
    twice = sorted({card for card in everything if everything.count(card) > 1})
    if twice:
        _refuse(f"more than once: {_spaced(tuple(twice))}")
    try:
        return Spot(game, tuple(known), wild_deuces, out, *shared)
    except ValueError as error:
        _refuse(f"hands: {error}")


def _hand(text: str, number: int, least: int, most: int) -> Cards:
    where = f"hand {number}"
    cards = _cards(text, where)
    if not least <= len(cards) <= most:
        _refuse(f"{where}: has {len(cards)} cards, not {least} to {most}")
    if len(set(cards)) < len(cards):
        _refuse(f"{where}: has a card twice")
    return cards


def _cards(text: str, where: str) -> Cards:
    letters = "".join(text.split())
    try:
        return parse_cards(letters)
    except ValueError as error:
        _refuse(f"{where}: {error}")


def _refuse(reason: str) -> NoReturn:
    typer.echo(reason, err=True)
    raise typer.Exit(REFUSED)


def _tables_of(order: Order) -> tuple[str, ...]:
    return () if order is Order.LOW8 else (order,)


def _spaced(cards: Cards) -> str:
    return " ".join(card_names((card,)) for card in cards)
