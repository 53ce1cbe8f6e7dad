"""Adaptive Mamba Neural Operator: a neural-operator package that knows no finance."""
