"""The only code that wraps or hooks torch: each place once, for all who listen."""
