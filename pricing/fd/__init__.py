"""Black–Scholes by finite differences: the second referee, and the source of labels.

``grid`` places the nodes, ``schemes`` the time steps, ``kernels`` runs them, ``solver`` nests and
extrapolates, ``spot`` reads off price and Greeks, ``surface`` whole surfaces and the exercise
boundary.
"""

from pricing.fd.solver import ACCURATE, FAST, FDSettings, refusals
from pricing.fd.spot import evaluate
from pricing.fd.surface import Surface, solve_surface

__all__ = ["ACCURATE", "FAST", "FDSettings", "Surface", "evaluate", "refusals", "solve_surface"]
