"""Benchmarks: each one answers a question and writes a CSV; see `README.md` in this folder."""
