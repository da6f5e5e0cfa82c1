"""Every command of a command line, the nested ones too; groups too where they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator


def walk(
    group: click.Group, path: tuple[str, ...] = (), *, groups: bool = True
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Names and commands, in the order that help lists them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        nested = isinstance(command, click.Group)
        if groups or not nested:
            yield (*path, name), command
        if nested:
            yield from walk(command, (*path, name), groups=groups)
