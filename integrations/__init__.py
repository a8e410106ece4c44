"""Hand a `SpanObjective` to search frameworks, with one subpackage for each framework."""
