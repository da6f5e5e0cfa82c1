"""`eop completion`: what makes a shell complete the words of `eop` and `hstu`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    short_help="Print what makes a shell complete `eop`.",
    epilog="Example: eop completion fish > ~/.config/fish/completions/eop.fish",
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.option(
    "--of",
    "program",
    type=click.Choice(["eop", "hstu"]),
    default="eop",
    show_default=True,
    help="Whose words.",
)
@click.pass_context
def completion(context: click.Context, shell: str, program: str) -> None:
    """Print a script that makes SHELL complete commands, options, runs, gates, entries, protocols.

    \b
    bash   eval "$(eop completion bash)"            in ~/.bashrc
    zsh    eval "$(eop completion zsh)"             in ~/.zshrc, after compinit
    fish   eop completion fish > ~/.config/fish/completions/eop.fish
    """  # noqa: D301 - \b is click's mark for text that keeps its lines
    made = get_completion_class(shell)
    assert made is not None, "click knows these shells"
    group = context.find_root().command
    click.echo(made(group, {}, program, f"_{program.upper()}_COMPLETE").source())
