"""The live build cannot be seeded or scripted: there is nothing to set."""

import ast
from pathlib import Path

import services.shuffler
from services.runtime.settings import ServiceSettings
from services.shuffler.settings import ShufflerSettings

SOURCES = sorted(Path(next(iter(services.shuffler.__path__))).glob("*.py"))


def imported(source: Path) -> set[str]:
    names: set[str] = set()
    for each in ast.walk(ast.parse(source.read_text())):
        if isinstance(each, ast.Import):
            names |= {alias.name for alias in each.names}
        elif isinstance(each, ast.ImportFrom):
            names.add(each.module or "")
    return names


def test_no_other_generator_is_ever_imported() -> None:
    assert SOURCES
    for source in SOURCES:
        assert not imported(source) & {"random", "numpy", "numpy.random", "secrets", "time"}, source


def test_only_the_generator_reads_the_kernel() -> None:
    readers = {source.name for source in SOURCES if "urandom" in source.read_text()}
    assert readers == {"generator.py"}


def test_its_own_settings_are_two_key_files() -> None:
    own = set(ShufflerSettings.model_fields) - set(ServiceSettings.model_fields)
    assert own == {"shuffler_seal_keys_file", "shuffler_receipt_keys_file"}
