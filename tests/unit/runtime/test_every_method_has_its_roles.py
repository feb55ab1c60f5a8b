"""Default deny: a method that nobody thought about is refused, and this test finds it first."""

import importlib
import pkgutil
from collections.abc import Iterator

import doorcard
import pytest
from google.protobuf.descriptor import FileDescriptor

from services.runtime.auth import Caller, check_allowed
from services.runtime.errors import PermissionDenied
from services.runtime.roles import METHOD_ROLES, Role


def contract_methods() -> Iterator[str]:
    for module in pkgutil.walk_packages(doorcard.__path__, "doorcard."):
        if module.name.endswith("_pb2"):
            file: FileDescriptor = importlib.import_module(module.name).DESCRIPTOR
            for service in file.services_by_name.values():
                for method in service.methods:
                    yield f"/{service.full_name}/{method.name}"


def test_the_table_of_roles_holds_exactly_the_methods_of_the_contracts() -> None:
    methods = set(contract_methods())
    assert len(methods) > 30
    assert set(METHOD_ROLES) == methods


def test_every_method_is_open_to_somebody() -> None:
    assert all(METHOD_ROLES.values())


def test_a_method_without_entry_is_refused_to_everyone() -> None:
    caller = Caller("anna", frozenset(Role))
    with pytest.raises(PermissionDenied) as refused:
        check_allowed("/doorcard.table.v1.TableService/NoSuchMethod", caller)
    assert refused.value.reason == "ROLE_NOT_ALLOWED"


@pytest.mark.parametrize("role", [Role.PLAYER, Role.OPERATOR, Role.AUDITOR, Role.CASHIER])
@pytest.mark.parametrize(
    "method",
    [
        "/doorcard.shuffler.v1.ShufflerService/Draw",
        "/doorcard.table.v1.TableInternalService/ReadOutbox",
        "/doorcard.wallet.v1.WalletService/ApplyEntries",
        "/doorcard.history.v1.HistoryService/StoreHands",
    ],
)
def test_cards_and_the_ledgers_entries_are_for_services_only(method: str, role: Role) -> None:
    with pytest.raises(PermissionDenied):
        check_allowed(method, Caller("someone", frozenset({role})))
    check_allowed(method, Caller("table", frozenset({Role.SERVICE})))


def test_a_cashier_moves_cash_and_sees_money_and_nothing_else() -> None:
    wallet = "/doorcard.wallet.v1.WalletService/"
    assert {method for method, roles in METHOD_ROLES.items() if Role.CASHIER in roles} == {
        wallet + name
        for name in ("Deposit", "Withdraw", "GetBalance", "ListTransfers", "GetTransfer")
    }


def test_services_put_no_money_in_and_correct_nothing() -> None:
    wallet = "/doorcard.wallet.v1.WalletService/"
    for name in (
        "Deposit",
        "Withdraw",
        "AdjustBalance",
        "ReverseTransfer",
        "CloseAccount",
        "ReopenAccount",
        "RetryParkedEntries",
        "ResolveParkedEntry",
    ):
        assert Role.SERVICE not in METHOD_ROLES[wallet + name]
        assert Role.PLAYER not in METHOD_ROLES[wallet + name]


def test_operators_pause_with_their_own_service_which_asks_for_a_reason() -> None:
    internal = "/doorcard.table.v1.TableInternalService/"
    assert METHOD_ROLES[f"{internal}PauseTable"] == {Role.SERVICE}
    assert f"{internal}ResumeTable" not in METHOD_ROLES


@pytest.mark.parametrize(
    ("service", "batch", "singles"),
    [
        ("shuffler.v1.ShufflerService", "BatchDeal", ("CreateDeck", "Draw", "Reshuffle")),
        ("showdown.v1.ShowdownService", "BatchDivideShowdown", ("DivideShowdown",)),
        ("wallet.v1.WalletService", "BatchAssessRake", ("AssessRake",)),
    ],
)
def test_nobody_gets_by_a_batch_what_he_may_not_call_by_itself(
    service: str, batch: str, singles: tuple[str, ...]
) -> None:
    for single in singles:
        assert (
            METHOD_ROLES[f"/doorcard.{service}/{batch}"]
            == (METHOD_ROLES[f"/doorcard.{service}/{single}"])
        )
