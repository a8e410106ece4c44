"""Show results as short tables when they are printed or displayed in a notebook."""

from collections.abc import Mapping
from html import escape


class Printable:
    """A result that is printed as a title and one line for each name and value."""

    def _summary(self) -> tuple[str, Mapping[str, str]]:
        """Return the title and the values by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        title, lines = self._summary()
        width = max(map(len, lines), default=0)
        return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in lines.items())])

    def _repr_html_(self) -> str:
        title, lines = self._summary()
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in lines.items()
        )
        return f"<table><caption>{escape(title)}</caption>{cells}</table>"


def counted(count: int, one: str) -> str:
    """Return a count with its noun, as in "1 row" and "2 rows"."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"
