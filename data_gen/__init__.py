"""Training sets, made from the numerical solvers of :mod:`pricing`."""
