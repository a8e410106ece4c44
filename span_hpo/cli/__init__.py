"""Provide the command line ``span-hpo``."""

from span_hpo.cli.exit_codes import main

__all__ = ["main"]
