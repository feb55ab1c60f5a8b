"""What is counted for every action, and the random bytes that every commit takes."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from services.runtime.metrics import Tally
from services.runtime.noise import PIECE_BYTES, random_bytes


def test_a_tally_shows_what_a_histogram_shows() -> None:
    shown = []
    for kind in (Histogram, Tally):
        registry = CollectorRegistry()
        metric = kind("took", "Seconds.", ["what"], buckets=(0.1, 1.0), registry=registry)
        for took_s in (0.05, 0.1, 0.100001, 0.5, 1.0, 7.0, 0.0):
            metric.labels("a").observe(took_s)
        metric.labels("never")
        shown.append(generate_latest(registry))
    assert shown[0] == shown[1]


def test_random_bytes_never_come_twice() -> None:
    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(lambda _: random_bytes(12), range(4 * PIECE_BYTES // 12)))
    assert {len(each) for each in taken} == {12}
    assert len(set(taken)) == len(taken)
    assert len(random_bytes(PIECE_BYTES)) == PIECE_BYTES


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_has_other_random_bytes_than_its_parent() -> None:
    random_bytes(1)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, random_bytes(12))
        os._exit(0)
    os.waitpid(child, 0)
    of_child = os.read(reader, 12)
    os.close(reader)
    os.close(writer)
    assert of_child != random_bytes(12)


@pytest.mark.parametrize("count", [-1, PIECE_BYTES + 1])
def test_more_than_a_piece_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="bytes, not"):
        random_bytes(count)
