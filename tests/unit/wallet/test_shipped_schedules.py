"""The shipped rake schedules, and files that are refused."""

import hashlib
from pathlib import Path

import pytest

from services.wallet.messages import schedule_message
from services.wallet.schedules import FOLDER, ScheduleError, Schedules, read_versions

PUBLISHED = {
    ("club", 1): "02b9b7224da2f374",
    ("none", 1): "5f3045597234ca26",
    ("standard", 1): "c62fce7e51477521",
    ("steps", 1): "2f53c7b2e54f152d",
}
"""(id, version) -> the beginning of the SHA-256 of its message.

Tables pin versions: if one changed, hands already played could no longer be checked. A new idea is
a new version.
"""


def test_a_published_version_never_changes() -> None:
    schedules = Schedules()
    found = {}
    for name in schedules.names():
        version = 1
        while (schedule := schedules.find(name, version)) is not None:
            content = schedule_message(schedule).SerializeToString(deterministic=True)
            found[name, version] = hashlib.sha256(content).hexdigest()[:16]
            version += 1
    assert found == PUBLISHED


def test_version_0_is_the_newest_and_unknown_ones_are_none() -> None:
    schedules = Schedules()
    newest = schedules.find("standard")
    assert newest is not None
    assert schedules.find("standard", newest.version) == newest
    assert schedules.find("standard", newest.version + 1) is None
    assert schedules.find("standard", -1) is None
    assert schedules.find("standrad") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("versions = [", "bad.toml"),
        ("", "versions"),
        ("versions = []", "no versions"),
        ("[[versions]]\nversion = 2", "version 1 is missing"),
        ("[[versions]]\nversion = 1\nbasis_point = 5", "basis_point"),
        ('[[versions]]\nversion = 1\nrounding = "up"', "up"),
        ("[[versions]]\nversion = 1\nbasis_points = 20000", "basis_points must be 0 to 10000"),
        ("[[versions]]\nversion = 1\ncaps = [{ players_from = 2 }]", "cap"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_fault(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ScheduleError) as caught:
        read_versions(path)
    assert said in str(caught.value)
    assert "bad.toml" in str(caught.value)


def test_a_house_has_schedules_of_its_own_beside_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text("[[versions]]\nversion = 1\nper_full = 50\nunits = 2\n")
    schedules = Schedules(FOLDER, tmp_path)
    found = schedules.find("ours")
    assert found is not None
    assert (found.schedule_id, found.per_full, found.units) == ("ours", 50, 2)
    assert schedules.find("standard") is not None


def test_a_house_cannot_give_a_shipped_schedule_other_terms(tmp_path: Path) -> None:
    (tmp_path / "standard.toml").write_text("[[versions]]\nversion = 1\n")
    with pytest.raises(ScheduleError, match="there is such a schedule already"):
        Schedules(FOLDER, tmp_path)
