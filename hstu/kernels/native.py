"""The compiled kernels of ``cpu.c``: built once for this machine, used where a compiler was found.

The library lies below ``sys.prefix`` under a name made of its source, flags, compiler and kind of
processor, so that a changed source or another machine never meets an old build. Where that folder
cannot be written (a jail, a system Python) the build goes to a temporary folder of this process.
``HSTU_KERNELS=torch`` in the environment turns the compiled kernels off; numbers then differ in
their last bits.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from hstu.data.errors import ExitCode, HstuError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

PACKAGE = Path(__file__).parents[1]
SOURCE = PACKAGE / "kernels" / "cpu.c"
TWINS = {
    "kernels/attention.py": "d7ee781f0adbba52f41c05115515fcd641dba4fb62ab8e98c64300eba1e3c12a",
    "losses/sampled_softmax.py": "81cc7ca253cae4c7b069689fc6a419f498a574f5d1fc804f2a5ac358aa710344",
}
FLAGS = (
    "-O3",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
)
VARIABLE = "HSTU_KERNELS"


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, built now if need be; ``None`` without a compiler or when turned off.

    Raises ``HstuError`` when the environment asks for ``native`` and there is none.
    """
    if turned_off():
        return None
    shared = Path(sys.prefix) / "lib" / "rankevolve"
    compiled = _loaded(shared)
    if compiled is None and os.environ.get(VARIABLE) == "native":
        raise _error(
            f"it is native, but no C compiler built {SOURCE}", "install one, or name it in CC"
        )
    return compiled


def turned_off() -> bool:
    """Whether the environment asks for the torch forms."""
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in ("auto", "native", "torch"):
        raise _error(f"it is {wanted!r}", "it must be auto, native or torch")
    return wanted == "torch"


@functools.cache
def digest(form: str) -> str:
    """Hex sha256 of a torch form, a file of this package."""
    return hashlib.sha256((PACKAGE / form).read_bytes()).hexdigest()


def unchanged(form: str) -> bool:
    """Whether the text of ``form`` is what compiled kernels were written for."""
    return digest(form) == TWINS[form]


def stands_for(form: str) -> bool:
    """Whether there are compiled kernels, and they were written for the text of ``form``.

    A changed formula is therefore what runs, whoever changed it; the kernels must be made to agree
    before its digest is entered anew.
    """
    return library() is not None and unchanged(form)


def usable(form: str, *tensors: Tensor) -> bool:
    """Whether the compiled kernels can take these tensors in place of ``form``."""
    fits = all(t.dtype is torch.float32 and t.device.type == "cpu" for t in tensors)
    return fits and stands_for(form)


def lanes() -> int:
    """Floats of one vector: rows of tables are padded to a multiple of it."""
    compiled = library()
    return 1 if compiled is None else int(compiled.hstu_lanes())


def in_parts(weights: Tensor, work: Callable[[int, int, int], None]) -> int:
    """Call ``work(part, first, last)`` on ranges of like total weight, one a thread of torch.

    The ranges depend on the weights and the number of threads alone, so sums that are kept apart
    by part and added in order repeat to the bit. Returns the number of parts.
    """
    total = len(weights)
    parts = max(1, min(torch.get_num_threads(), total))
    if parts == 1:
        work(0, 0, total)
        return 1
    shares = weights.cumsum(0) * parts / weights.sum()
    inner = torch.searchsorted(shares, torch.arange(1, parts, dtype=shares.dtype)).tolist()
    bounds = [0, *inner, total]
    spans = zip(range(parts), bounds[:-1], bounds[1:], strict=True)
    list(_pool(parts).map(lambda span: work(*span), spans))
    return parts


def pointer(tensor: Tensor) -> ctypes.c_void_p:
    """The address of a tensor's first element."""
    return ctypes.c_void_p(tensor.data_ptr())


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="hstu-kernel")


def _loaded(shared: Path) -> ctypes.CDLL | None:
    """The library, from ``shared`` if that can be written, else from a folder that goes at once."""
    compiler = _compiler()
    if compiler is None:
        return None
    words = " ".join([*compiler, *FLAGS]).encode()
    digest_of_all = hashlib.sha256(
        b"\0".join([SOURCE.read_bytes(), words, _processor()])
    ).hexdigest()
    file = f"hstu-kernels-{digest_of_all[:16]}.so"
    if (shared / file).is_file():
        with contextlib.suppress(OSError):  # torn, or another user's who keeps it: built anew
            return ctypes.CDLL(str(shared / file))
    try:
        shared.mkdir(parents=True, exist_ok=True)
        return _compiled(compiler, shared, file)
    except OSError:  # a jail or a system Python: read-only, or no permission
        return _compiled_for_now(compiler, file)


def _compiler() -> list[str] | None:
    """The command of the C compiler, which ``CC`` may name with arguments; ``None``: not found."""
    command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    found = shutil.which(command[0])
    return None if found is None else [found, *command[1:]]


def _compiled_for_now(compiler: list[str], file: str) -> ctypes.CDLL | None:
    """Build into a folder that goes at once; ``None`` where that cannot be loaded either."""
    with tempfile.TemporaryDirectory(prefix="hstu-kernels-") as folder:
        try:
            return _compiled(compiler, Path(folder), file)
        except OSError as error:
            print(
                f"the compiled kernels cannot be loaded, torch takes their place: {error}",
                file=sys.stderr,
            )
            return None


def _compiled(compiler: list[str], folder: Path, file: str) -> ctypes.CDLL | None:
    """Build into ``folder``, load it, put it in its place; ``None``: it does not compile."""
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".so", delete=False) as unfinished:
        target = Path(unfinished.name)
    try:
        done = subprocess.run(
            [*compiler, *FLAGS, "-o", str(target), str(SOURCE), "-lm"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(
                f"{SOURCE} does not compile, torch takes its place:\n{done.stderr}", file=sys.stderr
            )
            return None
        compiled = ctypes.CDLL(str(target))
        target.chmod(0o755)  # temporary files are their maker's alone, an environment is shared
        target.replace(folder / file)
        return compiled
    finally:
        target.unlink(missing_ok=True)


def _error(message: str, hint: str) -> HstuError:
    return HstuError(message, where=VARIABLE, hint=hint, exit_code=ExitCode.ENVIRONMENT)


def _processor() -> bytes:
    """What tells one kind of processor from another: model and instruction sets."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine().encode()
    kept = {line for line in lines if line.startswith(("model name", "flags", "Features"))}
    return "\n".join(sorted(kept)).encode()
