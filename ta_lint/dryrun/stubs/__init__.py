"""What code out of sight does: one file a library and topic."""
