"""Training sets from the physics of the paper's benchmarks, one problem per file."""
