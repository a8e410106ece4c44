"""What a search finds, what it costs, and what frameworks and clusters add to it."""
