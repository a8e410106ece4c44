"""The command line ``span-hpo``."""

from span_hpo.cli.commands import main

__all__ = ["main"]
