"""Trained operators that price options: coding, serving, their errors and their training."""
