"""Benchmarks: each module answers one question and writes a CSV.

Run one with ``python -m benchmarks NAME``; ``python -m benchmarks --help`` lists them.
"""
