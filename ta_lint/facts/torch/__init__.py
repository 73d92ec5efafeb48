"""What torch and its frameworks mean: their API, wrappers, ranks, checkpoints and hubs."""
