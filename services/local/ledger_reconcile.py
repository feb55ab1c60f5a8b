"""`doorcard ledger reconcile` and `resolve`: tables against ledger, now, by the reconciler's own
way of measuring; and a difference that an operator has settled.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Final
from uuid import uuid4

import typer
from doorcard.history.v1 import history_pb2_grpc
from doorcard.table.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    internal_pb2_grpc,
    table_pb2,
    table_pb2_grpc,
)
from doorcard.wallet.v1 import wallet_pb2 as pb
from doorcard.wallet.v1 import wallet_pb2_grpc

from services.local.commands import (
    CALL_S,
    Address,
    AsJson,
    Exit,
    Operator,
    Reason,
    Tables,
    Token,
    ask,
    pages,
    reach,
    refuse,
)
from services.local.paper import listing, paper
from services.local.waiting import progress_bar
from services.runtime.channels import call_sync
from services.runtime.errors import DoorcardError, InvalidArgument, NotFound
from services.runtime.ids import check_uuid
from services.runtime.shards import shard_of
from services.settlement import comparison, measuring
from services.settlement.comparison import Differences
from services.settlement.measuring import Measured, Sums
from services.settlement.peers import Peers

CONFIRM_S: Final = 1.0
"""Between the two measurements that must agree."""
OLD: Final = timedelta(seconds=150)
"""A reservation that is pending for so long should have been put to its table by now."""
PAGE: Final = 500
AUDITED_MAX: Final = 200
"""Characters of a reason in the tables' audit log."""

Shards = Annotated[
    list[int] | None, typer.Option("--shard", help="Only this shard; may be given several times.")
]
OneTable = Annotated[str, typer.Option("--table", help="Only this table; its id.")]
TheTable = Annotated[str, typer.Option("--table", help="The table's id.")]


@dataclass
class Found:
    """What a comparison of many shards found."""

    differences: Differences = field(default_factory=dict)
    parked: dict[str, int] = field(default_factory=dict)
    """table id -> entries."""
    failed: dict[int, str] = field(default_factory=dict)
    """shard -> why it could not be compared."""
    sums: list[Sums] = field(default_factory=list)
    old_reservations: int = 0

    @property
    def status(self) -> Exit:
        """What could not be compared is not known to be well."""
        if self.differences or any(
            each.difference or each.balance_difference for each in self.sums
        ):
            return Exit.FOUND
        return Exit.NOT_ASKED if self.failed else Exit.WELL


def reconcile_command(
    shard: Shards = None,
    table: OneTable = "",
    recount: Annotated[
        bool, typer.Option("--recount", help="Read every transfer for the sums, which takes long.")
    ] = False,
    wallet: Address = "",
    tables: Tables = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Compare the chips at the tables with their escrow, and the sums of every currency, now.

    Nothing is paused or changed: that is the reconciler's, which does the same all the time. With
    --shard or --table the sums of the whole ledger are left out. Exit status: 0 all is equal, 1
    something differs, 2 something could not be compared.
    """
    peers = _peers(wallet, tables, token)
    count = ask(peers.wallet.GetRoomSettings, pb.GetRoomSettingsRequest()).shards
    only = _table_id(table) if table else ""
    if unknown := sorted(each for each in shard or () if not 0 <= each < count):
        refuse(f"--shard: there is no shard {unknown[0]}; the room has shards 0 to {count - 1}")
    wanted = [shard_of(only, count)] if only else sorted(set(shard or ())) or range(count)
    found = _compare(peers, wanted, only)
    if not only and not shard:
        found.old_reservations = _old_reservations(peers)
        found.sums = _sums(peers, recount=recount)
    if as_json:
        typer.echo(json.dumps(_report(found)))
    else:
        _print(found)
    raise typer.Exit(found.status)


def resolve_command(
    table: TheTable,
    reason: Reason,
    stay_paused: Annotated[
        bool, typer.Option("--stay-paused", help="Record it, but leave the table paused.")
    ] = False,
    request_id: Annotated[
        str, typer.Option("--request-id", help="The same again is recorded once.")
    ] = "",
    wallet: Address = "",
    tables: Tables = "",
    token: Token = "",
    operator: Operator = "",
    as_json: AsJson = False,
) -> None:
    """Let a paused table go on, once its chips and its escrow are equal.

    Compares first and changes no amount: what differs is yours to settle, by adjusting the escrow
    of the sitting. Then your name and reason are recorded in the journal of the ledger, and the
    table is resumed, which the audit log has too. Exit status: 0 done, 1 it still differs or has
    parked entries, 2 a service could not be asked, or refused.
    """
    peers = _peers(wallet, tables, token, operator)
    table_id = _table_id(table)
    count = ask(peers.wallet.GetRoomSettings, pb.GetRoomSettingsRequest()).shards
    waits = _is_paused(tables, token, operator, table_id)
    measured = _confirmed(peers, shard_of(table_id, count))
    differing = {at: each for at, each in measured.differences.items() if at.table_id == table_id}
    if differing or table_id in measured.parked:
        parked = measured.parked.get(table_id, 0)
        if as_json:
            lines = [{**at._asdict(), "amount": each} for at, each in differing.items()]
            typer.echo(json.dumps({"differences": lines, "parked": parked}))
        else:
            _say_what_is_to_be_done(differing, parked)
        raise typer.Exit(Exit.FOUND)
    record = pb.RecordResolutionRequest(
        request_id=request_id or str(uuid4()),
        table_id=table_id,
        epoch=measured.epoch,
        applied_seq=measured.applied_seq,
        reason=reason,
    )
    done = ask(peers.wallet.RecordResolution, record)
    if not as_json:
        typer.echo(f"recorded as transfer {done.transfer_id}")
    if goes_on := waits and not stay_paused:
        resume = admin_pb2.TableAdminServiceResumeTableRequest(
            request_id=record.request_id,
            table_id=table_id,
            reason=f"ledger transfer {done.transfer_id}: {reason}"[:AUDITED_MAX],
        )
        stub = admin_pb2_grpc.TableAdminServiceStub(reach("tables", tables, token, operator))
        ask(stub.ResumeTable, resume)
    if as_json:
        typer.echo(json.dumps({"transfer": done.transfer_id, "goes_on": goes_on}))
    elif goes_on:
        typer.echo("the table goes on")


# Asking


def _peers(wallet: str, tables: str, token: str, operator: str = "") -> Peers:
    at_wallet = reach("wallet", wallet, token, operator)
    return Peers(
        internal_pb2_grpc.TableInternalServiceStub(reach("tables", tables, token, operator)),
        wallet_pb2_grpc.WalletServiceStub(at_wallet),
        # Nothing here asks the archive.
        history_pb2_grpc.HistoryServiceStub(at_wallet),
        CALL_S,
    )


def _table_id(text: str) -> str:
    try:
        return check_uuid(text, "--table")
    except InvalidArgument as error:
        refuse(str(error))


def _compare(peers: Peers, shards: Iterable[int], only: str) -> Found:
    found = Found()
    with progress_bar() as progress:
        for shard in progress.track(list(shards), description="comparing shards"):
            _compare_shard(peers, shard, only, found)
    return found


def _compare_shard(peers: Peers, shard: int, only: str, found: Found) -> None:
    try:
        measured = measuring.confirmed(peers, shard, CONFIRM_S)
    except DoorcardError as error:
        found.failed[shard] = error.reason
        return
    for place, amount in measured.differences.items():
        if only in {"", place.table_id}:
            found.differences[place] = amount
    for table_id, entries in measured.parked.items():
        if only in {"", table_id}:
            found.parked[table_id] = entries


def _confirmed(peers: Peers, shard: int) -> Measured:
    try:
        return measuring.confirmed(peers, shard, CONFIRM_S)
    except DoorcardError as error:
        refuse(str(error))


def _sums(peers: Peers, *, recount: bool) -> list[Sums]:
    try:
        currencies = measuring.currencies(peers)
        return [measuring.sums(peers, each, recount=recount) for each in currencies]
    except DoorcardError as error:
        refuse(str(error))


def _old_reservations(peers: Peers) -> int:
    request = pb.ListReservationsRequest(page_size=PAGE)
    request.older_than.FromTimedelta(OLD)
    return sum(len(page.reservations) for page in pages(peers.wallet.ListReservations, request))


def _is_paused(tables: str, token: str, operator: str, table_id: str) -> bool:
    """False for a table that is not there any more; one that plays on ends the command."""
    stub = table_pb2_grpc.TableServiceStub(reach("tables", tables, token, operator))
    try:
        request = table_pb2.GetTableRequest(table_id=table_id)
        found = call_sync(stub.GetTable, request, timeout_s=CALL_S).table
    except NotFound:
        return False
    except DoorcardError as error:
        refuse(str(error))
    if found.state != table_pb2.TABLE_STATE_PAUSED:
        refuse("the table is not paused: nothing waits for an operator")
    return True


# Telling


def _report(found: Found) -> dict[str, Any]:
    return {
        "ok": found.status is Exit.WELL,
        "differences": [{**at._asdict(), "amount": each} for at, each in found.differences.items()],
        "tables": [
            {"table_id": table_id, "currency": currency, "difference": amount}
            for (table_id, currency), amount in comparison.by_table(found.differences).items()
        ],
        "parked": [{"table_id": each, "entries": n} for each, n in found.parked.items()],
        "not_compared": [{"shard": each, "reason": why} for each, why in found.failed.items()],
        "sums": [_sum_line(each) for each in found.sums],
        "old_reservations": found.old_reservations,
    }


def _sum_line(sums: Sums) -> dict[str, Any]:
    fields = ("deposits", "withdrawals", "players", "escrow", "house")
    return {
        "currency": sums.currency,
        **{name: getattr(sums.totals, name) for name in fields},
        "difference": sums.difference,
        "balance_difference": sums.balance_difference,
    }


def _print(found: Found) -> None:
    console = paper()
    if found.sums:
        lines = [_sum_line(each) for each in found.sums]
        shown = listing(*lines[0])
        for line in lines:
            shown.add_row(*map(str, line.values()))
        console.print(shown)
    for (table_id, currency), amount in comparison.by_table(found.differences).items():
        typer.echo(f"table {table_id} differs by {amount} {currency}:")
        for place, each in found.differences.items():
            if (place.table_id, place.currency) == (table_id, currency):
                typer.echo(f"  sitting {place.sitting_id}: {each:+} at the table")
    for table_id, entries in found.parked.items():
        typer.echo(f"table {table_id}: {entries} entries are parked (doorcard ledger parked list)")
    for shard, why in found.failed.items():
        typer.echo(f"shard {shard} could not be compared: {why}")
    if found.old_reservations:
        typer.echo(f"{found.old_reservations} reservations are pending for {OLD.seconds} s or more")
    if found.status is Exit.WELL:
        typer.echo("all is equal")


def _say_what_is_to_be_done(differing: Differences, parked: int) -> None:
    if parked:
        typer.echo(f"{parked} entries are parked: doorcard ledger parked list, retry or resolve")
    for place, amount in differing.items():
        typer.echo(
            f"sitting {place.sitting_id}: at the table {amount:+} {place.currency} against its"
            " escrow; to make the escrow equal:\n"
            f"  doorcard ledger adjust --sitting {place.sitting_id} --amount {amount}"
            f" --currency {place.currency} --reason ..."
        )
