"""What torch does."""
