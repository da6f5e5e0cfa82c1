"""``hstu kernels``."""

from __future__ import annotations

import json

import click

from hstu.kernels import native


@click.command("kernels")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of words.")
def kernels_command(as_json: bool) -> None:
    """Build the compiled kernels for this machine, if need be, and say which kernels run.

    Example: hstu kernels
    """
    run, why = "native", None
    if native.library() is None:
        run = "torch"
        why = f"{native.VARIABLE}=torch" if native.turned_off() else "no C compiler built them"
    if as_json:
        click.echo(json.dumps({"schema": "hstu.kernels/1", "kernels": run, "why": why}))
    else:
        click.echo(f"kernels: {run}" + (f" ({why})" if why else ""))
