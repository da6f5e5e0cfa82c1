from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from hstu.data import fetch as module
from hstu.data.commands import data_commands
from hstu.data.errors import HstuError

if TYPE_CHECKING:
    from pathlib import Path


def wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"recbole/dataset_example/ml-100k/{name}", content)
    return path


def test_a_wheel_with_other_bytes_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    header = b"user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    files = {"ml-100k.inter": header + b"1\t2\t3\t4\n", "ml-100k.item": b"item_id:token\n2\n"}
    with pytest.raises(HstuError, match="digest differs"):
        module.extract(wheel(tmp_path / "w.whl", files), tmp_path / "ml-100k")
    assert [path.name for path in tmp_path.iterdir()] == ["w.whl"]


def test_a_wheel_without_the_data_and_a_broken_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HstuError, match="does not hold the data set") as error:
        module.extract(wheel(tmp_path / "w.whl", {}), tmp_path / "ml-100k")
    assert error.value.exit_code == 9
    (tmp_path / "w.whl").write_bytes(b"no zip")
    with pytest.raises(HstuError, match="does not hold the data set"):
        module.extract(tmp_path / "w.whl", tmp_path / "ml-100k")
    assert not (tmp_path / "ml-100k").exists()


def test_a_folder_in_the_way_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    (folder / "u.data").write_text("mine")
    with pytest.raises(HstuError, match=r"ml-100k\.inter is not in it"):
        module.fetch("ml-100k", tmp_path)
    assert (folder / "u.data").read_text() == "mine"


@pytest.mark.parametrize("dataset", ["ml-1m", "ml-20m", "my-own"])
def test_what_cannot_be_fetched_says_where_to_get_it(tmp_path: Path, dataset: str) -> None:
    arguments = ["fetch", dataset, "--to", str(tmp_path)]
    error = CliRunner().invoke(data_commands, arguments).exception
    assert isinstance(error, HstuError)
    assert error.exit_code == 2
    assert str(tmp_path / dataset) in str(error.hint)
    assert "make data DATASET=NAME" in str(error.hint)
    assert not (tmp_path / dataset).exists()
