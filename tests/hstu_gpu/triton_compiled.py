"""Compile every Triton program for a GPU, which needs none; print bytes on the chip as JSON.

Tiles are the smallest, since a compiler's time grows with them.
"""

from __future__ import annotations

import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from hstu.kernels import triton_programs

AMPERE = GPUTarget("cuda", 80, 32)
FLOATS = {"time", "position", "grad_scores", "values", "sums"}
OTHERS = {"buckets": "*u8", "lengths": "*i64", "scale": "fp32"}
SIZES = {
    "HEADS": 2,
    "DQK": 12,
    "DV": 16,
    "BLOCK_QK": 16,
    "BLOCK_V": 16,
    "BLOCK": 16,
    "BUCKETS": 256,
}
CONSTANTS = SIZES | {"BIASED": True, "PRODUCTS": tl.bfloat16, "PRECISION": "tf32x3"}


def kind(name: str) -> str:
    if name in FLOATS:
        return "*fp32"
    if name in {"q", "k", "v", "out"} or name.startswith("grad_"):
        return "*bf16"
    return OTHERS.get(name, "i32")


def compiled(name: str) -> int:
    program = getattr(triton_programs, name)
    names = program.arg_names
    signature = {n: "constexpr" if n in CONSTANTS else kind(n) for n in names}
    given = {(names.index(n),): value for n, value in CONSTANTS.items() if n in names}
    source = ASTSource(program, signature, constexprs=given)
    return triton.compile(source, target=AMPERE, options={"num_stages": 2}).metadata.shared


if __name__ == "__main__":
    json.dump({name: compiled(name) for name in sys.argv[1:]}, sys.stdout)
