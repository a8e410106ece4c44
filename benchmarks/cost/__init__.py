"""What one evaluation costs: time and memory, with span-rule values and with exact ones."""
