"""What Python and its standard library do."""
