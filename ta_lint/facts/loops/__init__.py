"""What happens in one training step, and in what order."""
