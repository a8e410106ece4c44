"""The same tasks solved by other libraries and by ours, in one run."""
