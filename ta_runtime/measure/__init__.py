"""Numbers of tensors, taken on their device: scalars, digests, and the tensors inside any structure."""
