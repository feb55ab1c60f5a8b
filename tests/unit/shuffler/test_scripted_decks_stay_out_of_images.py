"""The scripted shuffler is a distribution of its own: what images install does not have it."""

import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[3]
EXTRA = ROOT / "extras" / "scripted-shuffler"


def files_of_wheel(project: Path, folder: Path) -> list[str]:
    [wheel] = WheelBuilder(str(project)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_of_the_services_has_nothing_of_it(tmp_path: Path) -> None:
    files = files_of_wheel(ROOT, tmp_path)
    assert "services/shuffler/server.py" in files
    assert not [file for file in files if "scripted" in file and file.endswith(".py")]


def test_its_own_wheel_has_it_alone(tmp_path: Path) -> None:
    files = files_of_wheel(EXTRA, tmp_path)
    assert "scripted_shuffler/server.py" in files
    assert not [file for file in files if file.startswith("services")]


def test_no_service_imports_it() -> None:
    for source in (ROOT / "services").rglob("*.py"):
        assert "import scripted_shuffler" not in source.read_text()
        assert "from scripted_shuffler" not in source.read_text()
