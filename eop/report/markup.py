"""HTML that cannot forget to escape: text becomes markup through ``el`` only."""

from __future__ import annotations

import html


class Markup(str):
    """Text that is already HTML. Everything else is escaped when it meets ``el``."""

    __slots__ = ()


def el(tag: str, *children: str | None, **attributes: str | int | float | None) -> Markup:
    """An element. Children that are not ``Markup`` are escaped, ``None`` is left out.

    Attribute names: ``class_`` for class, ``_`` for ``-``; a value of ``None`` leaves it out.
    """
    names = "".join(
        f' {name.strip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{names}>{join(*children)}</{tag}>")


def join(*children: str | None) -> Markup:
    """Children one after the other, escaped unless they are ``Markup``."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(child)
            for child in children
            if child is not None
        )
    )
