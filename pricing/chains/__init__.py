"""Chains of quotes as vendors write them, and what a desk reads off them."""
