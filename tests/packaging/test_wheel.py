"""The wheel, installed beside nothing of the repository: `eop init` makes a project that runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eop.core.errors import EopError, ExitCode
from eop.driver.create import TEMPLATE, create

ROOT = Path(__file__).parents[2]


def done(folder: Path, site: Path, *argv: str) -> str:
    finished = subprocess.run(
        [sys.executable, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site), "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install` of the wheel alone puts into site-packages; dependencies are there."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
    done(
        ROOT,
        folder,
        *(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)),
    )
    [wheel] = folder.glob("rankevolve-*.whl")
    done(folder, folder, *pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel))
    return folder / "site"


def test_a_project_of_the_wheel_runs(site: Path, tmp_path: Path) -> None:
    where = done(tmp_path, site, "-c", "import eop, hstu; print(eop.__file__, hstu.__file__)")
    assert all(path.startswith(str(site)) for path in where.split())

    said = done(tmp_path, site, "-m", "eop.cli", "init", "mine", "--protocol", "minimal")

    project = tmp_path / "mine"
    assert "snakemake --cores" in said
    assert (
        "protocol: config/protocols/minimal.eop.md\n"
        in (project / "config/config.yaml").read_text()
    )
    assert done(project, site, "-m", "eop.cli", "check", "config/protocols/minimal.eop.md")
    done(project, site, "-m", "snakemake", "--cores", "2", "--quiet", "all")
    assert "look" in done(project, site, "-m", "eop.cli", "status")
    assert list((project / "runs").glob("minimal-synthetic/it01/look/artifacts/report.md"))


def test_the_wheel_explains_every_error_that_the_checkout_does(site: Path, tmp_path: Path) -> None:
    for code in ("EOP402", "EOP612"):
        of_wheel, of_checkout = (
            done(tmp_path, where, "-m", "eop.cli", "explain", code) for where in (site, ROOT)
        )
        assert of_wheel == of_checkout != ""


def test_wheel_and_checkout_make_the_same_project(site: Path, tmp_path: Path) -> None:
    done(tmp_path, site, "-m", "eop.cli", "init", "of-wheel")
    create(tmp_path / "of-checkout", protocol="hstu-evolve")

    of_wheel, of_checkout = (
        {
            path.relative_to(project).as_posix(): path.read_bytes()
            for path in project.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(project).parts
        }
        for project in (tmp_path / "of-wheel", tmp_path / "of-checkout")
    )

    assert of_wheel == of_checkout
    assert {name.split("/")[0] for name in of_wheel} >= {part.split("/")[0] for part in TEMPLATE}
    assert "hstu/models/hstu.py" in of_wheel
    assert not any("__pycache__" in name for name in of_wheel)


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(EopError, match=r"EOP834.*new or empty folder") as refused:
        create(tmp_path, protocol="minimal")

    assert refused.value.exit_code == ExitCode.USAGE
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_unknown_protocol_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(EopError, match=r"EOP835.*'hstu-evolv'") as refused:
        create(tmp_path / "new", protocol="hstu-evolv")

    assert "demo, hstu-evolve" in str(refused.value)
    assert not (tmp_path / "new").exists()
