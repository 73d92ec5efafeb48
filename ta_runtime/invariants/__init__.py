"""What always holds of healthy runs, learned from their traces, and where another run breaks it."""
