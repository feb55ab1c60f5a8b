"""The compiled kernel: the same numbers as numpy, or it is not used."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from services.game.ranking import batch, kernel

SEED = 20240620
SOURCES = Path(__file__).parents[3] / "kernel" / "doorcard_kernel"
RANKS: list[Callable[[batch.Hands], Any]] = [
    batch.high,
    batch.low8,
    batch.ace_to_five,
    batch.deuces_wild,
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The kernel, compiled for this test alone."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("kernel")
    shutil.copy(SOURCES / "__init__.py", folder)
    library = folder / "rank.so"
    subprocess.run(
        [compiler, "-O1", "-std=c11", "-fPIC", "-shared", "-o", library, SOURCES / "rank.c"],
        check=True,
    )
    spec = importlib.util.spec_from_file_location("doorcard_kernel", folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def forget() -> None:
    kernel.installed.cache_clear()
    batch._by_sums.cache_clear()
    batch._by_ranks_to_eight.cache_clear()
    batch._by_unpaired_ranks.cache_clear()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    """Lets the ranking find this kernel; None: there is none."""

    def put(found: Any) -> None:
        monkeypatch.setitem(sys.modules, "doorcard_kernel", found)
        forget()

    yield put
    monkeypatch.undo()
    forget()


def random_hands(count: int, how_many: int = 20_000) -> batch.Hands:
    random = np.random.default_rng(SEED)
    deck = np.tile(np.arange(52, dtype=np.uint8), (how_many, 1))
    return np.ascontiguousarray(random.permuted(deck, axis=1)[:, :count])


@pytest.mark.parametrize("count", [5, 6, 7])
@pytest.mark.parametrize("rank", RANKS)
def test_the_kernel_gives_the_numbers_of_numpy(
    compiled: ModuleType,
    install: Callable[[Any], None],
    rank: Callable[[batch.Hands], Any],
    count: int,
) -> None:
    hands = random_hands(count)
    install(None)
    with_numpy = rank(hands)
    install(compiled)
    in_c = rank(hands)
    assert kernel.installed() is compiled
    assert in_c.dtype == with_numpy.dtype
    assert np.array_equal(in_c, with_numpy)
    assert np.array_equal(rank(hands[::-3]), with_numpy[::-3])
    assert rank(hands[:0]).shape == (0,)


def test_cards_that_are_not_distinct_harm_nothing(
    compiled: ModuleType, install: Callable[[Any], None]
) -> None:
    install(compiled)
    hands = np.full((1000, 7), 51, np.uint8)  # Seven aces: a sum beyond the table.
    for rank in RANKS:
        assert rank(hands).shape == (1000,)


@pytest.mark.parametrize("count", [5, 6, 7])
def test_a_kernel_that_ranks_otherwise_is_not_used(
    compiled: ModuleType, install: Callable[[Any], None], count: int
) -> None:
    class Wrong:
        BySum = compiled.BySum

        @staticmethod
        def by_sum(*arguments: Any) -> int:
            return int(compiled.by_sum(arguments[0] + 1, arguments[1] - 1, *arguments[2:]))

        @staticmethod
        def by_union(*arguments: Any) -> int:
            return int(compiled.by_union(arguments[0] + 1, arguments[1] - 1, *arguments[2:]))

    hands = random_hands(count, 500)
    install(None)
    with_numpy = [rank(hands) for rank in RANKS]
    install(Wrong)
    for rank, expected in zip(RANKS, with_numpy, strict=True):
        assert np.array_equal(rank(hands), expected)
