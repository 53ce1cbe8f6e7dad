"""Black–Scholes by finite differences: the second referee, and the source of labels.

``grid`` places the nodes, ``schemes`` the time steps, ``kernels`` runs them, ``solver`` nests and
extrapolates, ``spot`` reads off price and Greeks, ``surface`` whole surfaces and the exercise
boundary; ``dividends``, ``timeline`` and ``jumps`` do the same under curves and dividends, and
``points`` reads V(S, t) at any spots and moments.
"""

from pricing.fd.dividends import evaluate as evaluate_under_markets
from pricing.fd.points import QUANTITIES as POINT_QUANTITIES
from pricing.fd.points import evaluate_points
from pricing.fd.solver import ACCURATE, FAST, FDSettings, refusals, under_markets
from pricing.fd.spot import evaluate
from pricing.fd.surface import Surface, solve_surface

__all__ = [
    "ACCURATE",
    "FAST",
    "POINT_QUANTITIES",
    "FDSettings",
    "Surface",
    "evaluate",
    "evaluate_points",
    "evaluate_under_markets",
    "refusals",
    "solve_surface",
    "under_markets",
]
