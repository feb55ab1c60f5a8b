"""What is generated from the code and committed is what the code would generate now."""

import re

from tools import errors_page, metrics_page, settings_page
from tools.__main__ import stale
from tools.generated import everything


def test_they_are_current() -> None:
    assert not stale(everything()), "make pages"


def test_every_label_is_described() -> None:
    used = {label for metric in metrics_page.declared() for label in metric.labels}
    assert used <= set(metrics_page.LABELS), "describe it in tools/metrics_page.py"


def test_examples_are_for_metrics_that_exist_and_name_them() -> None:
    metrics = {metric.name: metric for metric in metrics_page.declared()}
    assert set(metrics_page.EXAMPLES) <= set(metrics)
    for metric in metrics.values():
        assert metric.name in metric.example


def test_names_follow_the_practice_of_prometheus() -> None:
    """Base units, `_total` for counters only, a prefix that says whose it is."""
    for metric in metrics_page.declared():
        name = metric.name
        assert name.startswith(("doorcard_", "grpc_server_", "grpc_client_")), name
        assert not name.endswith(("_total", "_count", "_sum", "_bucket", "_info_total")), name
        assert not any(word in name.split("_") for word in ("ms", "milliseconds", "kb", "mb")), name
        if "duration" in name or "delay" in name or "lag" in name:
            assert name.endswith("_seconds"), name
        assert metric.text.strip().endswith((".", "well.")), f"{name}: {metric.text}"


def test_every_service_has_its_settings_on_the_page() -> None:
    names = {kind.__name__ for kind in settings_page.settings_classes()}
    assert names >= {
        "BeatSettings",
        "HistorySettings",
        "ShowdownSettings",
        "ShufflerSettings",
        "TableSettings",
        "WalletSettings",
        "WorkerSettings",
    }


def test_every_reason_of_an_error_is_a_word_and_says_what_to_do() -> None:
    found = errors_page.reasons()
    for each in found:
        assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", each.reason), each
        assert each.advice, each
    assert {each.reason for each in found} >= errors_page.OWN_ADVICE.keys() | {
        "ILLEGAL_ACTION",
        "ILLEGAL_AMOUNT",
        "INSUFFICIENT_FUNDS",
        "POSITION_TWICE",
        "SHARD_CLOSED",
        "STORE_AWAY",
    }


def test_an_error_whose_reason_is_no_literal_is_made_where_its_reasons_are_found() -> None:
    """A new way to make errors is added to `BY_WAY_OF`, or its reasons are not on the page."""
    made = {
        path.name
        for package in errors_page.SPEAKERS
        for path in (errors_page.SERVICES / package).rglob("*.py")
        if errors_page.without_reason(path)
    }
    # The reason that payback gives is that of a parked entry, and an operator's business.
    assert made == {"line.py", "payback.py", "requests.py", "server.py"}
