"""The handbook: no dead link, no dead code block, nothing named that is not there."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from services.local.secrets import write_secrets
from services.runtime.failpoints import VARIABLE as FAIL_POINTS
from tests.deploy.processes import SETTINGS
from tests.deploy.promql import known_names, metric_names
from tools.api_page import slug
from tools.commands_page import command
from tools.metrics_page import LABELS

ROOT: Final = Path(__file__).parent.parent.parent
PAGES: Final = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md", "extras/**/*.md")
    for path in ROOT.glob(pattern)
)
VARIABLE: Final = re.compile(r"\bDOORCARD_[A-Z_]+[A-Z]\b")
METRIC: Final = re.compile(r"`((?:doorcard|grpc)_[a-z_]+)(?:\{[^}`]*\})?`")
MERMAID: Final = ("flowchart ", "sequenceDiagram")
OTHERS: Final = {
    FAIL_POINTS,
    "DOORCARD_HOME",
    "DOORCARD_PROMETHEUS",
    "DOORCARD_SECRETS_DIR",
    # A pattern for two of them.
    "DOORCARD_SMTP",
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tokens(path: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))


@cache
def anchors(path: Path) -> frozenset[str]:
    """Of a page's headings; a second heading of the same name gets a number."""
    found: dict[str, int] = {}
    slugs = set()
    every = tokens(path)
    for opening, content in pairwise(every):
        if opening.type == "heading_open":
            one = slug(content.content)
            slugs.add(one if one not in found else f"{one}-{found[one]}")
            found[one] = found.get(one, 0) + 1
    return frozenset(slugs)


def links(path: Path) -> Iterator[str]:
    for token in tokens(path):
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrs["href"])
            elif child.type == "image":
                yield str(child.attrs["src"])


def blocks(path: Path) -> Iterator[tuple[str, str]]:
    """(language, text) of every fenced block."""
    for token in tokens(path):
        if token.type == "fence":
            yield token.info.strip(), token.content


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in links(path):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), link
        assert there.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(there), link


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_block_of_code_is_alive(path: Path) -> None:
    for language, text in blocks(path):
        match language:
            case "python":
                compile(text, name(path), "exec", ast.PyCF_ONLY_AST)
            case "promql":
                assert metric_names(text) <= known_names(), text
            case "mermaid":
                assert text.startswith(MERMAID), text
            case "yaml":
                list(yaml.safe_load_all(text))
            case "sh":
                for line in text.replace("\\\n", " ").splitlines():
                    check_command(line)
            case "":
                pass
            case _:
                raise AssertionError(f"{name(path)}: nobody checks {language}")


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_variables_and_metrics_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(VARIABLE.findall(text)) <= variables() | OTHERS
    series = known_names()
    for metric in set(METRIC.findall(text)) - set(LABELS):
        assert metric in series or any(each.startswith(metric) for each in series), metric


def test_every_page_can_be_reached_from_the_handbooks_first() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = (link.partition("#")[0] for link in links(page) if ":" not in link)
        waiting += [(page.parent / target).resolve() for target in targets if target]
    assert {path for path in PAGES if path.is_relative_to(ROOT / "docs")} <= seen


def test_the_installation_makes_every_secret_that_the_pods_mount(tmp_path: Path) -> None:
    made = set(
        write_secrets(tmp_path, room="room", days=1, postgres="p:1", redis="r:1", broker="b:1")
    )
    text = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    created: dict[str, set[str]] = {}
    for line in text.splitlines():
        found = re.search(r"-n doorcard create secret generic (\S+)", line)
        if found:
            created[found[1]] = set(re.findall(r"--from-file=room-secrets/(\S+)", line))
            assert created[found[1]] <= made, line
    mounted: dict[str, set[str]] = {}
    for path in sorted((ROOT / "deploy/kubernetes/base").glob("*.yaml")):
        for each in yaml.safe_load_all(path.read_text()):
            for secret, keys in secrets_of(each):
                mounted.setdefault(secret, set()).update(keys)
    assert created == mounted


def secrets_of(value: Any) -> Iterator[tuple[str, set[str]]]:
    """(secret, its keys) wherever a manifest refers to one."""
    if isinstance(value, dict):
        secret = value.get("secret")
        if isinstance(secret, dict) and "items" in secret:
            yield secret["name"], {item["key"] for item in secret["items"]}
        for inner in value.values():
            yield from secrets_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from secrets_of(inner)


@cache
def variables() -> frozenset[str]:
    return frozenset(
        f"DOORCARD_{field.upper()}" for kind in SETTINGS.values() for field in kind.model_fields
    )


@cache
def make_targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def check_command(line: str) -> None:
    """Commands of ours exist with their options; files and modules that are named are there."""
    words = shlex.split(line, comments=True)
    if not words:
        return
    program, *rest = words
    if program.endswith("doorcard"):
        check_doorcard(rest)
    elif program == "make":
        targets = [word for word in rest if "=" not in word]
        assert set(targets) <= make_targets(), line
    elif program == "python" and rest[:1] == ["-m"] and rest[1].startswith("services"):
        module = ROOT.joinpath(*rest[1].split("."))
        assert module.with_suffix(".py").exists() or (module / "__main__.py").exists(), line
    elif program == "kubectl" and "-k" in rest:
        folder = ROOT / rest[rest.index("-k") + 1]
        assert (folder / "kustomization.yaml").exists(), line


def check_doorcard(words: list[str]) -> None:
    found: Any = command()
    while words and words[0] in getattr(found, "commands", {}):
        found, words = found.commands[words[0]], words[1:]
    assert not getattr(found, "commands", {}), words
    options = {option for each in found.params for option in each.opts} | {"--help"}
    assert {word for word in words if word.startswith("--")} <= options, words
