"""Working with prices: comparisons, books, smiles, sweeps, and sample contracts."""
