"""Training sets of options, from the finite-difference solver."""
