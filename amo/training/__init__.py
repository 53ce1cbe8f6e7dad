"""Training: one loop, its state on disk, losses, scores, optimisers and worker processes."""
