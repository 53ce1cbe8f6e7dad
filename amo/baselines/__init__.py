"""Rivals of the operator, one self-contained file each."""
