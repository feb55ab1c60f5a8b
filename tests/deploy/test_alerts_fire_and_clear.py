"""promtool fires and clears every alert; each has its severity, summary and runbook."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.deploy.alert_cases import CASES, AlertCase
from tests.deploy.promql import DEPLOY, known_names, metric_names, records

RULES: Final = DEPLOY / "prometheus" / "rules"
RUNBOOKS: Final = DEPLOY / "runbooks"
QUERY: Final = re.compile(r"```promql\n(.+?)\n```", re.DOTALL)
HEADINGS: Final = (
    "## What it means",
    "## What to look at",
    "## What to do",
    "## How to know that it worked",
)


def rules() -> Iterator[dict[str, Any]]:
    for path in sorted(RULES.glob("*.yml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def severity(alert: str, burn_rate: str | None) -> str:
    return next(
        str(rule["labels"]["severity"])
        for rule in alerts()
        if rule["alert"] == alert and rule["labels"].get("burn_rate") == burn_rate
    )


def promtool(*arguments: object) -> str:
    program = shutil.which("promtool")
    assert program, "promtool is missing: make deploy-tools"
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def unit_test(case: AlertCase) -> dict[str, Any]:
    """As `promtool test rules` wants it: silent at the start, firing, silent again."""
    firing = [
        {
            "exp_labels": {
                "severity": severity(case.alert, labels.get("burn_rate")),
                **labels,
            },
            "exp_annotations": {
                "summary": summary,
                "runbook_url": f"deploy/runbooks/{case.alert}.md",
            },
        }
        for labels, summary in case.firing
    ]
    return {
        "name": case.alert,
        "interval": f"{case.interval_min}m",
        "input_series": [{"series": name, "values": each} for name, each in case.series.items()],
        "alert_rule_test": [
            {"eval_time": "0m", "alertname": case.alert, "exp_alerts": []},
            {"eval_time": f"{case.fires}m", "alertname": case.alert, "exp_alerts": firing},
            {"eval_time": f"{case.clears}m", "alertname": case.alert, "exp_alerts": []},
        ],
    }


def test_every_alert_has_a_case() -> None:
    wanted = Counter((rule["alert"], rule["labels"].get("burn_rate")) for rule in alerts())
    assert {(case.alert, case.labels.get("burn_rate")) for case in CASES} == set(wanted)


def test_every_alert_says_how_urgent_it_is_and_what_to_do() -> None:
    for rule in alerts():
        assert rule["labels"]["severity"] in {"page", "ticket"}, rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]
        assert rule["annotations"]["runbook_url"] == f"deploy/runbooks/{rule['alert']}.md"


def test_every_runbook_is_of_an_alert_and_whole() -> None:
    names = {rule["alert"] for rule in alerts()}
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == names
    for path in sorted(RUNBOOKS.glob("*.md")):
        text = path.read_text()
        parts = re.split("|".join(map(re.escape, HEADINGS)), text)
        assert [text.count(heading) for heading in HEADINGS] == [1] * 4, path.name
        assert QUERY.search(parts[2]), f"{path.name}: no query to look at"
        assert QUERY.search(parts[4]), f"{path.name}: no query that shows that it worked"


def test_rules_and_runbooks_name_metrics_that_exist() -> None:
    known = known_names()
    for rule in rules():
        assert metric_names(rule["expr"]) <= known, rule
    for path in RUNBOOKS.glob("*.md"):
        for query in QUERY.findall(path.read_text()):
            assert metric_names(query) <= known, f"{path.name}: {query}"


def test_recorded_names_are_used() -> None:
    used = set().union(*(metric_names(rule["expr"]) for rule in rules()))
    for path in RUNBOOKS.glob("*.md"):
        used |= set().union(*(metric_names(query) for query in QUERY.findall(path.read_text())))
    assert records() <= used


@pytest.mark.deep
def test_promtool_finds_every_query_sound(tmp_path: Path) -> None:
    promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    runbooks = sorted(RUNBOOKS.glob("*.md"))
    queries = [query for path in runbooks for query in QUERY.findall(path.read_text())]
    numbered = [{"record": f"runbook:{n}", "expr": query} for n, query in enumerate(queries)]
    file = tmp_path / "runbooks.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "runbooks", "rules": numbered}]}))
    promtool("check", "rules", file)


@pytest.mark.deep
def test_discovery_by_kubernetes_keeps_every_pod_of_the_room(tmp_path: Path) -> None:
    """Debian's promtool knows no Kubernetes: the rest of the file is checked with files instead."""
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus-kubernetes.yml").read_text())
    (job,) = config["scrape_configs"]
    (discovery,) = job.pop("kubernetes_sd_configs")
    assert discovery == {"role": "pod", "namespaces": {"names": ["doorcard"]}}
    job["file_sd_configs"] = [{"files": ["targets.yml"]}]
    config["rule_files"] = [str(RULES / "*.yml")]
    (tmp_path / "targets.yml").write_text("[]")
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    promtool("check", "config", tmp_path / "prometheus.yml")


@pytest.mark.deep
@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: "-".join((case.alert, *case.labels.values()))
)
def test_it_fires_and_clears(case: AlertCase, tmp_path: Path) -> None:
    file = tmp_path / "test.yml"
    files = [str(path) for path in sorted(RULES.glob("*.yml"))]
    tests = {
        "rule_files": files,
        "evaluation_interval": f"{min(case.interval_min, 5)}m",
        "tests": [unit_test(case)],
    }
    file.write_text(yaml.safe_dump(tests, sort_keys=False))
    promtool("test", "rules", file)


@pytest.mark.deep
def test_alertmanager_takes_its_configuration(tmp_path: Path) -> None:
    program = shutil.which("amtool")
    assert program, "amtool is missing: make deploy-tools"
    text = (DEPLOY / "alertmanager" / "alertmanager.yml").read_text()
    # Debian's is older than the image's and knows no url_file yet.
    file = tmp_path / "alertmanager.yml"
    file.write_text(text.replace("url_file: /run/secrets/on_call_url", "url: http://on.call/"))
    done = subprocess.run(
        [program, "check-config", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for labels, receiver in ((["severity=page"], "on-call"), (["severity=ticket"], "tickets")):
        routed = subprocess.run(
            [program, "config", "routes", "test", f"--config.file={file}", *labels],
            capture_output=True,
            text=True,
            check=False,
        )
        assert routed.stdout.strip() == receiver, routed.stderr
