"""Run the command line as ``python -m span_hpo``."""

from span_hpo.cli import main

if __name__ == "__main__":
    main()
