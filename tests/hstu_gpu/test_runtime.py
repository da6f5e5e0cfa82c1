"""Device, precision and compilation: options of a run, named in what it leaves."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hstu.config import read_config
from hstu.data.batches import TrainingBatch, TrainingRows
from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize
from hstu.models import Hstu, build
from hstu.models.devices import choose_device
from hstu.training import draw_negatives, train, training_loss
from hstu.training.progress import Lines
from hstu.training.runtime import Runtime

CONFIG = Path(__file__).with_name("team.yaml")
BF16 = Runtime("cpu", "bf16")
TOLERANCE = 0.02  # of the loss: products of 8 bits, averaged over tokens


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runtime")
    synthesize(1, folder / "raw", Shape(users=20, items=30, genres=4, shortest=4, longest=20))
    write_split(read_source(folder / "raw"), "synthetic", folder / "split", SplitOptions())
    return folder / "split"


@pytest.fixture
def case(split: Path) -> tuple[Hstu, TrainingBatch, torch.Tensor]:
    torch.manual_seed(1)
    items = Items.read(split / "items.parquet").counted([split / "train.parquet"])
    model = build(read_config(CONFIG), items)
    with torch.no_grad():  # scores large enough for rounding to show
        for block in model.blocks:
            block.uvqk.mul_(20)
    rows = TrainingRows.read(split, items, history_length=10)
    batch = rows.batch(range(len(rows)))
    return model, batch, draw_negatives(batch, len(items), 8, torch.Generator().manual_seed(1))


def gradients(model: Hstu, batch: TrainingBatch, negatives: torch.Tensor) -> tuple[float, Any]:
    model.zero_grad()
    loss = training_loss(model, batch, negatives).mean()
    assert loss.dtype is torch.float32
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


def test_bf16_is_near_float32_and_keeps_float32_parameters(case: Any) -> None:
    model, batch, negatives = case
    exact, wanted = gradients(model, batch, negatives)
    BF16.prepare(model)
    rounded, found = gradients(model, batch, negatives)
    assert rounded != exact
    assert math.isclose(rounded, exact, rel_tol=TOLERANCE)
    assert found.keys() == wanted.keys()
    for name, grad in found.items():
        assert grad.dtype is torch.float32, name
        assert grad.isfinite().all(), name
        alike = torch.cosine_similarity(grad.flatten(), wanted[name].flatten(), dim=0)
        assert alike > 0.99, (name, alike)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_under_bf16_norms_and_outputs_are_float32(
    case: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch, _ = case
    normed: list[torch.dtype] = []
    layer_norm = nn.functional.layer_norm

    def spy(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        out = layer_norm(x, *args, **kwargs)
        normed.extend([x.dtype, out.dtype])
        return out

    products: list[torch.dtype] = []
    block = model.blocks[0]
    block.out.register_forward_hook(lambda _module, _given, out: products.append(out.dtype))
    BF16.prepare(model)
    monkeypatch.setattr(nn.functional, "layer_norm", spy)
    encoded = model.encode(batch.inputs)
    assert products == [torch.bfloat16]
    assert len(normed) == 4
    assert set(normed) == {torch.float32}
    assert encoded.dtype is torch.float32
    lengths = encoded[batch.inputs.valid].norm(dim=-1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


def test_compiled_blocks_are_torchs_form_in_one_graph(
    case: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced for real, run without the code generator, which takes half a minute."""
    model, batch, negatives = case
    wanted, _ = gradients(model, batch, negatives)
    graphs: list[Any] = []

    def run_as_traced(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    trace = nn.Module.compile
    monkeypatch.setattr(
        nn.Module, "compile", lambda self, **options: trace(self, backend=run_as_traced, **options)
    )
    Runtime("cpu", compile=True).prepare(model)
    found, _ = gradients(model, batch, negatives)
    assert math.isclose(found, wanted, rel_tol=1e-5)
    assert len(graphs) == 1


class Stopping(Lines):
    """Interrupts after the first epoch, or remembers what it was told."""

    def __init__(self, *, stop: bool) -> None:
        self.stop = stop
        self.notes: list[str] = []

    def epoch(self, *_: object) -> None:
        if self.stop:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_what_a_run_leaves_names_its_precision(split: Path, tmp_path: Path) -> None:
    config = read_config(CONFIG)
    with pytest.raises(KeyboardInterrupt):
        train(config, split, tmp_path, runtime=BF16, progress=Stopping(stop=True))
    shown = Stopping(stop=False)
    train(config, split, tmp_path, runtime=Runtime("cpu"), progress=shown)
    assert "runtime differs" in shown.notes[0]
    side_car = json.loads((tmp_path / "checkpoint.json").read_text())
    runtime = side_car["runtime"]
    assert (runtime["device"], runtime["precision"], runtime["compile"]) == (
        "cpu",
        "float32",
        False,
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [("tpu", "no device 'tpu'"), ("cuda:1:2", "no device"), ("cuda:x", "no device")],
)
def test_a_name_that_is_no_device(name: str, message: str) -> None:
    with pytest.raises(HstuError, match=message):
        choose_device(name)


def test_a_process_of_several_takes_the_gpu_of_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    assert choose_device("auto") == torch.device("cuda:0")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    assert choose_device("cpu") == torch.device("cpu")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device("cuda") == torch.device("cuda:1")
    assert taken == [0, 1, 1]
    with pytest.raises(HstuError, match="is one GPU"):
        choose_device("cuda:1")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(HstuError, match="no CUDA device number 2, of 2"):
        choose_device("auto")
