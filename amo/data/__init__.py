"""Training data: the format on disk, splits of it, and batches of tensors."""
