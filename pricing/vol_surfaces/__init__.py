"""Volatility surfaces through quoted options: parametric, smoothed, and free of arbitrage."""
