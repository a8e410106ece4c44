"""Adapters that hand a `SpanObjective` to a search framework, one subpackage for each."""
