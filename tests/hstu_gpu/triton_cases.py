"""Run with TRITON_INTERPRET=1: largest relative difference of each result, as JSON on stdout."""

from __future__ import annotations

import json
import sys

import torch
import triton.language as tl
from torch import Tensor

from hstu.kernels import Bias, Relation, attention, triton_attention

# Triton's interpreter keeps bfloat16 as integers and cannot multiply it.
triton_attention.PRODUCTS[torch.bfloat16] = tl.float32

# Heads, and the sizes of their queries and values. Blocks are of 64, 64, 16 and 64 places.
LENGTHS = {"ragged": [66, 1, 33], "one": [1], "wide": [40, 17], "unbiased": [20, 3]}
SIZES = {"ragged": (2, 25, 10), "one": (1, 16, 16), "wide": (1, 200, 72), "unbiased": (3, 8, 5)}
RESULTS = ("out", "q", "k", "v", "time", "position")


def leaves(case: str, dtype: torch.dtype) -> tuple[list[Tensor], Relation, int]:
    """q, k, v, both biases; the relation; the divisor. Padding holds numbers that must not leak."""
    generator = torch.Generator().manual_seed(len(case))
    lengths, (heads, dqk, dv) = torch.tensor(LENGTHS[case]), SIZES[case]
    users, width = len(lengths), int(lengths.max())
    divisor = width + 11
    shape = (users, width, heads * (2 * dqk + dv))
    packed = torch.randn(shape, generator=generator).to(dtype)
    parts = packed.split([heads * dqk, heads * dqk, heads * dv], dim=-1)
    q, k, v = (part.view(users, width, heads, -1) for part in parts)
    time = torch.randn(129, generator=generator) / 4
    position = torch.randn(2 * divisor - 1, generator=generator) / 4
    buckets = torch.randint(0, 129, (users, width, width), generator=generator)
    return [q, k, v, time, position], Relation(buckets.to(torch.uint8), lengths), divisor


def results(case: str, dtype: torch.dtype, *, by_triton: bool) -> list[Tensor]:
    """What ``RESULTS`` names, zero in padding; the reference is computed in float32."""
    made, relation, divisor = leaves(case, dtype)
    inputs = [x if by_triton else x.float() for x in made]
    inputs = [x.detach().as_strided(x.shape, x.stride()).requires_grad_() for x in inputs]
    bias = None if case == "unbiased" else Bias(*inputs[3:])
    if by_triton:
        out = triton_attention.attend(*inputs[:3], bias, relation, divisor)
    else:
        out = attention.attend(*inputs[:3], bias, relation, divisor=divisor)
    valid = torch.arange(out.shape[1]) < relation.lengths[:, None]
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    (out.float() * upstream * valid[..., None]).sum().backward()
    if not by_triton:
        out = out * valid[..., None]
    grads = [torch.zeros(()) if x.grad is None else x.grad for x in inputs]
    return [out.detach(), *grads]


def differences(case: str, dtype: torch.dtype) -> dict[str, float]:
    """Largest difference over the largest value, for each result."""
    found = results(case, dtype, by_triton=True)
    wanted = results(case, dtype, by_triton=False)
    scales = [float(value.abs().max()) or 1.0 for value in wanted]
    gaps = [float((a.float() - b).abs().max()) for a, b in zip(found, wanted, strict=True)]
    return {name: g / s for name, g, s in zip(RESULTS, gaps, scales, strict=True)}


def main() -> None:
    torch.set_num_threads(1)
    measured = {case: differences(case, torch.float32) for case in LENGTHS}
    measured["bfloat16"] = differences("unbiased", torch.bfloat16)
    twice = [results("wide", torch.float32, by_triton=True) for _ in range(2)]
    equal = all(torch.equal(a, b) for a, b in zip(*twice, strict=True))
    json.dump({"differences": measured, "repeats": equal}, sys.stdout)


if __name__ == "__main__":
    main()
