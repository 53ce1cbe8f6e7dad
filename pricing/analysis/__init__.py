"""What is done with prices: comparisons, books, smiles, sweeps, and contracts to try them on."""
