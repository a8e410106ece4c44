"""Tables in Markdown."""


def table(columns: list[str], lines: list[list[str]]) -> str:
    """Return a table in Markdown."""
    head = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return "\n".join([*head, *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"
