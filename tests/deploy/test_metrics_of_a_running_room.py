"""Every metric of every process of a room where hands are played: names, labels, whole numbers."""

import re
import urllib.request

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from services.local.room import METRICS, Room
from services.local.summary import Summary
from tests.deploy.conftest import Played
from tools.metrics_page import LABELS, declared

pytestmark = [pytest.mark.xdist_group("played"), pytest.mark.timeout(240)]
SERIES_MAX = 6000
"""Of one process of a room with 8 shards; a label that grows with play passes it soon."""


class Scraped:
    """What every process says after a demo."""

    def __init__(self, room: Room, summary: Summary) -> None:
        self.summary = summary
        self.families: dict[str, list[Metric]] = {
            name: list(text_string_to_metric_families(page(room.metrics_url(name))))
            for name in METRICS
        }

    def total(self, name: str, **labels: str) -> float:
        """Sum of a series over all processes."""
        return sum(
            sample.value
            for families in self.families.values()
            for family in families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return bytes(answer.read()).decode()


@pytest.fixture(scope="module")
def scraped(played: Played) -> Scraped:
    return Scraped(played.room, played.summary)


def test_every_label_has_one_of_its_few_values(scraped: Scraped) -> None:
    for process, families in scraped.families.items():
        for family in families:
            for sample in family.samples:
                for label, value in sample.labels.items():
                    assert label in LABELS, f"{process}: {sample.name} has a label {label}"
                    pattern = LABELS[label][1]
                    assert re.fullmatch(pattern, value), f"{process}: {sample.name} {label}={value}"


def test_no_process_has_more_series_than_its_words_allow(scraped: Scraped) -> None:
    for process, families in scraped.families.items():
        assert sum(len(family.samples) for family in families) < SERIES_MAX, process


def test_there_are_no_created_series(scraped: Scraped) -> None:
    for families in scraped.families.values():
        names = {sample.name for family in families for sample in family.samples}
        assert not [name for name in names if name.endswith("_created")]


def test_everything_that_a_process_shows_is_on_the_page(scraped: Scraped) -> None:
    known = {metric.name for metric in declared()}
    for process, families in scraped.families.items():
        ours = {family.name for family in families if family.name.startswith("doorcard_")}
        assert ours <= known, process


def test_replicas_and_workers_add_up_to_whole_numbers(scraped: Scraped) -> None:
    # A hand that all leave at once is void: it is counted, settled and archived like any other.
    hands = scraped.total("doorcard_hands_total")
    assert hands == scraped.summary.hands
    # The worker's children have counted this, each its own part.
    assert scraped.total("doorcard_archived_hands_total") == scraped.summary.settled_hands == hands
    assert scraped.total("doorcard_settled_entries_total", kind="hand") == hands
    assert scraped.total("doorcard_settlement_delay_seconds_count") == scraped.total(
        "doorcard_settled_entries_total"
    )
    assert scraped.total("doorcard_mails_total", outcome="sent") == scraped.summary.mails_sent
    assert scraped.total("doorcard_mails_total", outcome="failed") == 0
    assert scraped.total("doorcard_rake_minor_units_total") == scraped.summary.rake_total


def test_every_dependency_is_timed(scraped: Scraped) -> None:
    for dependency in ("redis", "postgres", "smtp", "broker"):
        assert scraped.total(
            "doorcard_dependency_duration_seconds_count", dependency=dependency, outcome="ok"
        ), dependency
    for service, method in (
        ("shuffler.v1.ShufflerService", "CreateDeck"),
        ("shuffler.v1.ShufflerService", "Draw"),
        ("showdown.v1.ShowdownService", "DivideShowdown"),
        ("wallet.v1.WalletService", "AssessRake"),
        ("wallet.v1.WalletService", "ApplyEntries"),
        ("history.v1.HistoryService", "StoreHands"),
        ("table.v1.TableInternalService", "ReadOutbox"),
    ):
        labels = {"grpc_service": f"doorcard.{service}", "grpc_method": method}
        assert scraped.total("grpc_client_handled_total", grpc_code="OK", **labels), method
        assert scraped.total("grpc_client_handling_seconds_count", **labels), method


def test_the_objective_lies_between_two_close_buckets(scraped: Scraped) -> None:
    bounds = {
        float(sample.labels["le"])
        for families in scraped.families.values()
        for family in families
        for sample in family.samples
        if sample.name == "doorcard_action_duration_seconds_bucket"
    }
    assert {0.04, 0.05, 0.06} <= bounds
