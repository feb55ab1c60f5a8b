"""Who may call what: every method of every service, by full name. What is not here is refused."""

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a token says its bearer is."""

    PLAYER = "player"
    OPERATOR = "operator"
    SERVICE = "service"
    AUDITOR = "auditor"
    CASHIER = "cashier"
    """Moves money in and out for the players in its token's `act_for`, and nothing else."""


OPEN_METHODS: Final = frozenset(
    {
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/List",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    }
)
"""Answered without a token: they tell nothing about the game."""

_PLAYERS: Final = frozenset({Role.PLAYER, Role.SERVICE})
"""A player for himself, or a gateway for players that its `act_for` covers (`acting_player`)."""
_SERVICES: Final = frozenset({Role.SERVICE})
_OPERATORS: Final = frozenset({Role.OPERATOR})
_OVERSIGHT: Final = frozenset({Role.OPERATOR, Role.SERVICE, Role.AUDITOR})
_AUDIT: Final = frozenset({Role.OPERATOR, Role.AUDITOR})
_CASHIERS: Final = frozenset({Role.OPERATOR, Role.CASHIER})
_ALL: Final = frozenset({Role.PLAYER, Role.OPERATOR, Role.SERVICE, Role.AUDITOR})
_MONEY: Final = _ALL | _CASHIERS
"""A player's own money; cashiers see that of the players they act for."""

METHOD_ROLES: Final[dict[str, frozenset[Role]]] = {
    "/doorcard.shuffler.v1.ShufflerService/CreateDeck": _SERVICES,
    "/doorcard.shuffler.v1.ShufflerService/Draw": _SERVICES,
    "/doorcard.shuffler.v1.ShufflerService/Reshuffle": _SERVICES,
    "/doorcard.shuffler.v1.ShufflerService/BatchDeal": _SERVICES,
    "/doorcard.shuffler.v1.ShufflerService/ListReceiptKeys": _ALL,
    "/doorcard.showdown.v1.ShowdownService/DivideShowdown": _SERVICES,
    "/doorcard.showdown.v1.ShowdownService/BatchDivideShowdown": _SERVICES,
    "/doorcard.showdown.v1.ShowdownService/EvaluateHands": _OVERSIGHT,
    "/doorcard.showdown.v1.ShowdownService/EstimateEquity": _OVERSIGHT,
    "/doorcard.table.v1.TableService/CreateTable": _OPERATORS,
    "/doorcard.table.v1.TableService/ListTables": _ALL,
    "/doorcard.table.v1.TableService/WatchLobby": _ALL,
    "/doorcard.table.v1.TableService/ListSeats": _PLAYERS,
    "/doorcard.table.v1.TableService/FindSeat": _PLAYERS,
    "/doorcard.table.v1.TableService/GetTable": _ALL,
    "/doorcard.table.v1.TableService/TakeSeat": _PLAYERS,
    "/doorcard.table.v1.TableService/LeaveSeat": _PLAYERS,
    "/doorcard.table.v1.TableService/SitOut": _PLAYERS,
    "/doorcard.table.v1.TableService/SitBack": _PLAYERS,
    "/doorcard.table.v1.TableService/TopUp": _PLAYERS,
    "/doorcard.table.v1.TableService/JoinWaitingList": _PLAYERS,
    "/doorcard.table.v1.TableService/LeaveWaitingList": _PLAYERS,
    "/doorcard.table.v1.TableService/ChangeTable": _PLAYERS,
    "/doorcard.table.v1.TableService/SetSeatOptions": _PLAYERS,
    "/doorcard.table.v1.TableService/ShowCards": _PLAYERS,
    "/doorcard.table.v1.TableService/Act": _PLAYERS,
    "/doorcard.table.v1.TableService/Play": _PLAYERS,
    "/doorcard.table.v1.TableService/WatchTable": _ALL,
    "/doorcard.table.v1.TableService/WatchRouting": _ALL,
    "/doorcard.table.v1.TableAdminService/PutTemplate": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/DeleteTemplate": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/CreateTableFromTemplate": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/ScheduleTable": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/CancelScheduledTable": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/PauseTable": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/ResumeTable": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/CloseTable": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/SetMaintenance": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/VoidHand": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/RemovePlayer": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/Announce": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/BreakTable": _OPERATORS,
    "/doorcard.table.v1.TableAdminService/GetTemplate": _AUDIT,
    "/doorcard.table.v1.TableAdminService/ListTemplates": _AUDIT,
    "/doorcard.table.v1.TableAdminService/ListScheduledTables": _AUDIT,
    "/doorcard.table.v1.TableAdminService/InspectTable": _AUDIT,
    # Entries of the outbox hold every card of a hand: not even for operators.
    "/doorcard.table.v1.TableInternalService/ReadOutbox": _SERVICES,
    "/doorcard.table.v1.TableInternalService/TrimOutbox": _SERVICES,
    "/doorcard.table.v1.TableInternalService/InspectMoney": _OVERSIGHT,
    "/doorcard.table.v1.TableInternalService/ResolveReservation": _SERVICES,
    "/doorcard.table.v1.TableInternalService/PauseTable": _SERVICES,
    "/doorcard.wallet.v1.WalletService/Deposit": _CASHIERS,
    "/doorcard.wallet.v1.WalletService/Withdraw": _CASHIERS,
    "/doorcard.wallet.v1.WalletService/AdjustBalance": _OPERATORS,
    "/doorcard.wallet.v1.WalletService/ReverseTransfer": _OPERATORS,
    "/doorcard.wallet.v1.WalletService/CloseAccount": _OPERATORS,
    "/doorcard.wallet.v1.WalletService/ReopenAccount": _OPERATORS,
    "/doorcard.wallet.v1.WalletService/ListAccounts": _AUDIT,
    "/doorcard.wallet.v1.WalletService/GetBalance": _MONEY,
    "/doorcard.wallet.v1.WalletService/ListTransfers": _MONEY,
    "/doorcard.wallet.v1.WalletService/GetTransfer": _MONEY,
    "/doorcard.wallet.v1.WalletService/ReserveBuyIn": _SERVICES,
    "/doorcard.wallet.v1.WalletService/GetReservation": _OVERSIGHT,
    "/doorcard.wallet.v1.WalletService/ListReservations": _OVERSIGHT,
    "/doorcard.wallet.v1.WalletService/ApplyEntries": _SERVICES,
    "/doorcard.wallet.v1.WalletService/GetProgress": _SERVICES,
    "/doorcard.wallet.v1.WalletService/OpenEpoch": _SERVICES,
    "/doorcard.wallet.v1.WalletService/PayBackEscrow": _SERVICES,
    "/doorcard.wallet.v1.WalletService/InspectEscrow": _OVERSIGHT,
    "/doorcard.wallet.v1.WalletService/ListParkedEntries": _OVERSIGHT,
    "/doorcard.wallet.v1.WalletService/RetryParkedEntries": _OPERATORS,
    "/doorcard.wallet.v1.WalletService/ResolveParkedEntry": _OPERATORS,
    "/doorcard.wallet.v1.WalletService/RecordResolution": _OPERATORS,
    "/doorcard.wallet.v1.WalletService/ListCurrencies": _OVERSIGHT,
    "/doorcard.wallet.v1.WalletService/GetTotals": _OVERSIGHT,
    "/doorcard.wallet.v1.WalletService/VerifyLedger": _AUDIT,
    "/doorcard.wallet.v1.WalletService/ReportRake": _AUDIT,
    "/doorcard.wallet.v1.WalletService/AssessRake": _SERVICES,
    "/doorcard.wallet.v1.WalletService/BatchAssessRake": _SERVICES,
    "/doorcard.wallet.v1.WalletService/GetRakeSchedule": _ALL,
    "/doorcard.wallet.v1.WalletService/GetRoomSettings": _OVERSIGHT,
    "/doorcard.history.v1.HistoryService/StoreHands": _SERVICES,
    "/doorcard.history.v1.HistoryService/GetArchiveProgress": _SERVICES,
    "/doorcard.history.v1.HistoryService/GetHand": _ALL,
    "/doorcard.history.v1.HistoryService/ListHands": _ALL,
    "/doorcard.history.v1.HistoryService/RequestHandEmail": _PLAYERS,
    "/doorcard.history.v1.HistoryService/SetMailAddress": _OPERATORS,
    "/doorcard.history.v1.HistoryService/ClaimEmailRequests": _SERVICES,
    "/doorcard.history.v1.HistoryService/CompleteEmailRequest": _SERVICES,
    "/doorcard.history.v1.HistoryService/AppendAuditRecord": _SERVICES,
    "/doorcard.history.v1.HistoryService/ListAuditRecords": _AUDIT,
    "/doorcard.history.v1.HistoryService/VerifyAuditLog": _AUDIT,
}
"""/package.Service/Method -> the roles that may call it."""
