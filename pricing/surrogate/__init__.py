"""Surrogates, trained operators that price options: coding, serving, errors and training."""
