"""`doorcard ledger`: what operators and auditors ask of the wallet."""

import json
from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import uuid4

import typer
from doorcard.game.v1 import game_pb2
from doorcard.wallet.v1 import wallet_pb2 as pb
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.local.commands import (
    Address,
    AsJson,
    Exit,
    Operator,
    Reason,
    Token,
    WalletAccess,
    refuse,
)
from services.local.ledger_reconcile import reconcile_command, resolve_command
from services.local.paper import listing, paper
from services.local.waiting import spinner
from services.runtime.clock import milliseconds, utc_text

PAGE: Final = 500
THOUSANDTHS: Final = 1000
GAMES: Final = {
    game_pb2.GAME_HIGH: "high",
    game_pb2.GAME_HI_LO: "hi-lo",
    game_pb2.GAME_RAZZ: "razz",
}


class By(StrEnum):
    """What a rake report adds up by."""

    DAY = "day"
    STAKE = "stake"
    TABLE = "table"
    PLAYER = "player"


ledger_app = typer.Typer(
    help="The ledger: verify and reconcile it, report rake, correct it, look after what is parked.",
    no_args_is_help=True,
)
parked_app = typer.Typer(help="Outbox entries that could not be applied.", no_args_is_help=True)
ledger_app.add_typer(parked_app, name="parked")
ledger_app.command("reconcile")(reconcile_command)
ledger_app.command("resolve")(resolve_command)

Currency = Annotated[str, typer.Option("--currency", help="ISO 4217 code; XTS for play money.")]


@ledger_app.command("verify")
def verify_command(
    known: Annotated[
        str, typer.Option(metavar="SEAL:HASH", help="A seal that was noted elsewhere.")
    ] = "",
    wallet: Address = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Compare every row with the hash chain, and every balance with its transfers.

    Exit status: 0 all is as it was written, 1 faults were found, 2 the wallet could not be asked.
    """
    at = WalletAccess(wallet, token)
    seal, digest = _known(known)
    found: dict[str, Any] = {"seals": 0, "rows": 0, "accounts": 0, "unsealed": 0}
    faults: list[pb.LedgerFault] = []
    last_seal, last_hash = 0, b""
    request = pb.VerifyLedgerRequest(known_seal=seal, known_hash=digest)
    with spinner("verifying") as say:
        for page in at.pages(at.stub.VerifyLedger, request):
            faults += page.faults
            for field in ("seals", "rows", "accounts"):
                found[field] += getattr(page, field)
            if page.last_seal:
                last_seal, last_hash = page.last_seal, page.last_hash
                found["unsealed"] = page.unsealed
            say(f"verifying: {found['rows']} rows, {found['accounts']} accounts")
    entries = [
        {"kind": _short(pb.FaultKind.Name(each.kind), "FAULT_KIND_"), "row": each.row,
         "seal": each.seal, "detail": each.detail}
        for each in faults
    ]  # fmt: skip
    found |= {"last_seal": last_seal, "last_hash": last_hash.hex(), "faults": entries}
    found["ok"] = not faults
    if as_json:
        typer.echo(json.dumps(found))
    else:
        for entry in entries:
            typer.echo(f"{entry['kind']}  {entry['row']}: {entry['detail']}")
        typer.echo(
            f"{found['rows']} rows under {found['seals']} seals, {found['accounts']} accounts,"
            f" {len(faults)} faults; {found['unsealed']} transfers wait for the next seal"
        )
        if last_seal:
            typer.echo(f"worth noting elsewhere: {last_seal}:{last_hash.hex()}")
    raise typer.Exit(Exit.FOUND if faults else Exit.WELL)


@ledger_app.command("rake")
def rake_command(
    by: Annotated[By, typer.Option("--by", help="What to add up by.")],
    currency: Currency = "XTS",
    first: Annotated[str, typer.Option("--from", metavar="DAY", help="First day.")] = "",
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="Last day.")] = "",
    table: Annotated[str, typer.Option("--table", help="Only this table.")] = "",
    player: Annotated[str, typer.Option("--player", help="Only this player.")] = "",
    wallet: Address = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Report rake by the room's day, by stake, table or player, in minor units.

    A player's part is given both ways: shared equally among those dealt in, and by what each put
    into the pots. Exit status: 0, or 2 when the wallet could not be asked.
    """
    at = WalletAccess(wallet, token)
    request = pb.ReportRakeRequest(
        by=pb.RakeGrouping.Value(f"RAKE_GROUPING_{by.name}"),
        currency=currency,
        first_day=first,
        last_day=last,
        table_id=table,
        player_id=player,
        page_size=PAGE,
    )
    of_player = bool(player) or by is By.PLAYER
    with spinner("adding up"):
        lines = [line for page in at.pages(at.stub.ReportRake, request) for line in page.lines]
    entries = [_rake_entry(by, line, of_player=of_player) for line in lines]
    if as_json:
        typer.echo(json.dumps({"by": by, "currency": currency, "lines": entries}))
        return
    shares = ("dealt", "contributed") if of_player else ()
    shown = listing(by, "hands", "rake", *shares)
    for entry in entries:
        shown.add_row(*(str(entry[column]) for column in (by, "hands", "rake", *shares)))
    paper().print(shown)


@parked_app.command("list")
def list_command(
    table: Annotated[str, typer.Option("--table", help="Only this table's.")] = "",
    resolved: Annotated[bool, typer.Option("--all", help="Resolved ones too.")] = False,
    wallet: Address = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """List parked entries, with what each was to do in JSON.

    Exit status: 0 none is open, 1 some are, 2 the wallet could not be asked.
    """
    at = WalletAccess(wallet, token)
    request = pb.ListParkedEntriesRequest(table_id=table, include_resolved=resolved, page_size=PAGE)
    found = [each for page in at.pages(at.stub.ListParkedEntries, request) for each in page.entries]
    _print_parked(found, as_json=as_json)
    still = any(not each.HasField("resolved") for each in found)
    raise typer.Exit(Exit.FOUND if still else Exit.WELL)


@parked_app.command("retry")
def retry_command(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table's id.")],
    wallet: Address = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Try a table's parked entries again, in order, up to the first that still cannot be applied.

    Exit status: 0 all are applied, 1 some are still parked, 2 the wallet could not be asked.
    """
    at = WalletAccess(wallet, token, operator)
    request = pb.RetryParkedEntriesRequest(request_id=str(uuid4()), table_id=table)
    answer = at.ask(at.stub.RetryParkedEntries, request)
    if as_json:
        typer.echo(json.dumps(_entry(answer)))
    else:
        typer.echo(f"{len(answer.applied)} applied, {len(answer.parked)} still parked")
        for each in answer.parked[:1]:
            typer.echo(f"{each.entry_id}: {each.reason}")
    raise typer.Exit(Exit.FOUND if answer.parked else Exit.WELL)


@parked_app.command("resolve")
def resolve_parked_command(
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="The entry's id.")],
    reason: Reason,
    wallet: Address = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Settle that a parked entry is never applied. What it should have moved is then up to you.

    Exit status: 0 settled, 2 the wallet could not be asked, or refused.
    """
    at = WalletAccess(wallet, token, operator)
    request = pb.ResolveParkedEntryRequest(request_id=str(uuid4()), entry_id=entry, reason=reason)
    _print_parked([at.ask(at.stub.ResolveParkedEntry, request).entry], as_json=as_json)


@ledger_app.command("adjust")
def adjust_command(
    amount: Annotated[
        int, typer.Option("--amount", help="What is gained from the house, minor units; signed.")
    ],
    reason: Reason,
    currency: Currency,
    player: Annotated[str, typer.Option("--player", help="The player.")] = "",
    sitting: Annotated[str, typer.Option("--sitting", help="Or a sitting's escrow.")] = "",
    request_id: Annotated[
        str, typer.Option("--request-id", help="The same again does nothing twice.")
    ] = "",
    wallet: Address = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Move money between a player or a sitting and the house, with a reason.

    Exit status: 0 done, 2 the wallet could not be asked, or refused.
    """
    if bool(player) == bool(sitting):
        refuse("give --player or --sitting, one of them")
    at = WalletAccess(wallet, token, operator)
    request = pb.AdjustBalanceRequest(
        request_id=request_id or str(uuid4()), amount=amount, currency=currency, reason=reason
    )
    if player:
        request.player_id = player
    else:
        request.sitting_id = sitting
    done = at.ask(at.stub.AdjustBalance, request)
    if as_json:
        typer.echo(json.dumps({"transfer": done.transfer_id, "balance": done.balance}))
    else:
        typer.echo(f"transfer {done.transfer_id}, balance {done.balance}")


@ledger_app.command("reverse")
def reverse_command(
    transfer: Annotated[str, typer.Argument(metavar="TRANSFER", help="The transfer's id.")],
    reason: Reason,
    wallet: Address = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Book a transfer the other way round, with a reason.

    Exit status: 0 done, 2 the wallet could not be asked, or refused.
    """
    at = WalletAccess(wallet, token, operator)
    request = pb.ReverseTransferRequest(
        request_id=str(uuid4()), transfer_id=transfer, reason=reason
    )
    done = at.ask(at.stub.ReverseTransfer, request)
    typer.echo(
        json.dumps({"transfer": done.transfer_id}) if as_json else f"transfer {done.transfer_id}"
    )


@ledger_app.command("transfer")
def transfer_command(
    transfer: Annotated[str, typer.Argument(metavar="TRANSFER", help="The transfer's id.")],
    wallet: Address = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Show a transfer with all its lines.

    Exit status: 0, or 2 when the wallet could not be asked, or knows no such transfer.
    """
    at = WalletAccess(wallet, token)
    found = at.ask(at.stub.GetTransfer, pb.GetTransferRequest(transfer_id=transfer))
    if as_json:
        typer.echo(json.dumps(_entry(found)))
        return
    kind = _short(pb.TransferKind.Name(found.kind), "TRANSFER_KIND_").lower().replace("_", " ")
    told = [f"transfer {found.transfer_id}: {kind}", _time(found.at)]
    told += [f"table {found.table_id}"] if found.table_id else []
    told += [f"hand {found.hand_id}"] if found.hand_id else []
    told += [found.reason] if found.reason else []
    typer.echo(", ".join(told))
    shown = listing("from", "to", "amount", "")
    for line in found.lines:
        shown.add_row(
            _owner(line.debit), _owner(line.credit), str(line.amount), line.debit.currency
        )
    paper().print(shown)


def _owner(account: pb.Account) -> str:
    purpose = _short(pb.AccountPurpose.Name(account.purpose), "ACCOUNT_PURPOSE_").lower()
    return f"{purpose.replace('_', ' ')} {account.owner}".strip()


def _known(text: str) -> tuple[int, bytes]:
    if not text:
        return 0, b""
    number, _, digest = text.partition(":")
    try:
        return int(number), bytes.fromhex(digest)
    except ValueError:
        refuse("--known: the seal's number, a colon and its hash as it was printed")


def _rake_entry(by: By, line: pb.RakeLine, *, of_player: bool) -> dict[str, Any]:
    what = {
        By.DAY: line.day,
        By.STAKE: f"{GAMES.get(line.game, 'unknown')} {line.stake}".strip(),
        By.TABLE: line.table_id,
        By.PLAYER: line.player_id,
    }[by]
    entry: dict[str, Any] = {by.value: what, "hands": line.hands, "rake": line.rake}
    if of_player:
        entry |= {
            "dealt": line.dealt_thousandths / THOUSANDTHS,
            "contributed": line.contributed_thousandths / THOUSANDTHS,
        }
    return entry


def _print_parked(found: list[pb.ParkedEntry], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([_entry(each) for each in found]))
        return
    if not found:
        typer.echo("nothing is parked")
        return
    shown = listing("entry", "table", "place", "reason", "parked", "resolved")
    for each in found:
        resolved = f"{each.resolution} ({each.resolved_by})" if each.HasField("resolved") else ""
        place = f"{each.shard}/{each.epoch}/{each.seq}"
        shown.add_row(
            each.entry_id, each.table_id, place, each.reason, _time(each.parked), resolved
        )
    paper().print(shown)


def _entry(message: Message) -> dict[str, Any]:
    """A message as JSON with the contract's own names."""
    return MessageToDict(message, preserving_proto_field_name=True)


def _time(stamp: Timestamp) -> str:
    return utc_text(milliseconds(stamp))


def _short(name: str, prefix: str) -> str:
    return name.removeprefix(prefix)
