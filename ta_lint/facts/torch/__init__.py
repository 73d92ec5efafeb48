"""The semantics of torch and its frameworks: their API, wrappers, ranks, checkpoints and hubs."""
