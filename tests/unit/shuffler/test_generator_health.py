"""The generator is watched at start and always; the first failure stops it for good."""

import itertools
import os
from collections.abc import Callable

import pytest

from services.runtime.metrics import REGISTRY
from services.shuffler import generator as module
from services.shuffler.deck import fresh_deck
from services.shuffler.generator import (
    PROPORTION_CUTOFF,
    REPETITION_CUTOFF,
    WINDOW,
    HealthTests,
    KernelGenerator,
    RngUnhealthy,
)

Source = Callable[[int], bytes]


def breaks(monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    monkeypatch.setattr(module, "urandom", source)


def counting() -> Source:
    values = itertools.count()
    return lambda length: bytes(next(values) % 251 for _ in range(length))


def test_cutoffs_give_a_false_alarm_once_in_two_to_the_64() -> None:
    assert REPETITION_CUTOFF == 9
    assert PROPORTION_CUTOFF == 26


def test_the_kernel_passes_at_start_and_over_many_decks() -> None:
    generator = KernelGenerator()
    generator.test_at_start()
    for _ in range(500):
        fresh_deck(generator)
    assert generator.healthy


def test_a_stuck_generator_fails_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    breaks(monkeypatch, lambda length: b"\x2a" * length)
    with pytest.raises(RngUnhealthy, match="repetition count"):
        KernelGenerator().test_at_start()


def test_a_generator_that_repeats_a_block_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    block = os.urandom(1024)
    breaks(monkeypatch, lambda length: block[:length])
    generator = KernelGenerator()
    generator.draw(64)
    with pytest.raises(RngUnhealthy, match="repeated block"):
        generator.draw(64)


def test_a_value_that_comes_too_often_fails() -> None:
    # One in eight instead of one in 256, never twice in a row.
    biased = bytes(7 if place % 8 == 0 else 8 + place % 240 for place in range(WINDOW))
    with pytest.raises(RngUnhealthy, match="adaptive proportion"):
        HealthTests().look(biased)


def test_the_tests_see_across_draws_of_any_length() -> None:
    watch = HealthTests()
    for _ in range(REPETITION_CUTOFF - 1):
        watch.look(b"\x07")
    with pytest.raises(RngUnhealthy, match="repetition count"):
        watch.look(b"\x07")


def test_one_less_than_the_cutoff_passes() -> None:
    HealthTests().look(b"\x07" * (REPETITION_CUTOFF - 1) + b"\x08")


def test_a_window_begins_afresh_after_512_bytes() -> None:
    watch = HealthTests()
    source = counting()
    for _ in range(100):
        watch.look(source(WINDOW))


def test_an_even_but_predictable_source_is_not_what_these_tests_can_find(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # They find a broken generator, not a guessable one; that is why there is only the kernel's.
    breaks(monkeypatch, counting())
    KernelGenerator().test_at_start()


def test_a_failure_is_for_good_even_if_the_source_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = KernelGenerator()
    with monkeypatch.context() as broken:
        breaks(broken, bytes)
        with pytest.raises(RngUnhealthy):
            fresh_deck(generator)
    assert not generator.healthy
    with pytest.raises(RngUnhealthy, match="repetition count"):
        generator.draw(1)
    assert REGISTRY.get_sample_value("doorcard_rng_healthy") == 0


def test_a_kernel_that_gives_nothing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_length: int) -> bytes:
        raise OSError("no entropy")

    breaks(monkeypatch, gone)
    with pytest.raises(RngUnhealthy, match="availability"):
        KernelGenerator().draw(32)
