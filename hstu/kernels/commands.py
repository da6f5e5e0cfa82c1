"""``hstu kernels``."""

from __future__ import annotations

import click

from hstu.kernels import native


@click.command("kernels")
def kernels_command() -> None:
    """Build the compiled kernels for this machine, if need be, and say which kernels run.

    Example: hstu kernels
    """
    if native.library() is None:
        why = f"{native.VARIABLE}=torch" if native.turned_off() else "no C compiler built them"
        click.echo(f"kernels: torch ({why})")
    else:
        click.echo("kernels: native")
