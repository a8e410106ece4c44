"""The pages for readers are short, wrapped, and linked without gaps."""

import re

import pytest

from tests.places import ROOT

NAMED = ("README", "CHANGELOG", "CONTRIBUTING", "examples/README", "benchmarks/README")
PAGES = [ROOT / f"{name}.md" for name in NAMED] + sorted((ROOT / "docs").glob("*.md"))
LONGEST_LINE = 100


def prose(text):
    """Return the numbered lines of a page outside of code blocks and tables."""
    lines, in_code = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith("|"):
            lines.append((number, line))
    return lines


def headings(text):
    """Return the anchors of the headings of a page, as GitHub writes them."""
    titles = [line.lstrip("#").strip() for _, line in prose(text) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(text):
    """Return the targets of the relative links and pictures of a page."""
    written = "\n".join(line for _, line in prose(text))
    targets = re.findall(r"\]\(([^)\s]+)\)", written)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def named(page):
    return str(page.relative_to(ROOT))


def test_prose_leaves_out_code_and_tables():
    """Only code blocks and tables may be wide."""
    text = "# A\n```\nlong\n```\n| a |\n|---|\n[x](y.md#z)"
    assert prose(text) == [(1, "# A"), (7, "[x](y.md#z)")]
    assert headings("## Table 3: *all* rows_ in-bound") == {"table-3-all-rows_-in-bound"}
    assert links(text + " [web](https://x.org) ![image](p.png)") == ["y.md#z", "p.png"]


def test_readme_is_one_screen():
    """The README is an overview: everything else is in the guides."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 160


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_prose_is_wrapped(page):
    """No line of prose is longer than a line of code."""
    long = [number for number, line in prose(page.read_text()) if len(line) > LONGEST_LINE]
    assert not long


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    """Every relative link leads to a file, and to a heading of it if it names one."""
    broken = []
    for link in links(page.read_text()):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in headings(target.read_text())):
            broken.append(link)
    assert not broken


def test_guides_are_listed():
    """The index of the guides leaves none out."""
    guides = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert guides <= set(links((ROOT / "docs" / "README.md").read_text()))
