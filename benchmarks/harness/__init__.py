"""What all benchmarks share: data sets, CSVs of results, times and tables in Markdown."""
