"""The sets by name: one line and one file each."""

from collections.abc import Callable, Mapping

from data_gen.dataset import DataSet
from data_gen.options.market_set import MarketSet
from data_gen.options.paper_options import PaperOptionsSet
from data_gen.options.surrogate_sets import AmericanSet, EuropeanSet
from data_gen.physics.advection import AdvectionSet
from data_gen.physics.airfoil import AirfoilSet
from data_gen.physics.brusselator import BrusselatorSet
from data_gen.physics.darcy import DarcySet
from data_gen.physics.elasticity import ElasticitySet
from data_gen.physics.fractal_darcy import FractalDarcySet
from data_gen.physics.glove import GloveSet
from data_gen.physics.navier_stokes import NavierStokesSet
from data_gen.physics.pipe import PipeSet
from data_gen.physics.plasticity import PlasticitySet
from data_gen.physics.reaction_diffusion import ReactionDiffusionSet
from data_gen.physics.symbols import AdvectionSpeedsSet, HelmholtzSet
from data_gen.toys import AntiderivativeSet, DiffusionSet

SETS: Mapping[str, Callable[..., DataSet]] = {
    "european": EuropeanSet,
    "american": AmericanSet,
    "american-market": MarketSet,
    "paper-options": PaperOptionsSet,
    "antiderivative": AntiderivativeSet,
    "diffusion": DiffusionSet,
    "darcy": DarcySet,
    "elasticity": ElasticitySet,
    "navier-stokes": NavierStokesSet,
    "pipe": PipeSet,
    "airfoil": AirfoilSet,
    "advection": AdvectionSet,
    "advection-speeds": AdvectionSpeedsSet,
    "helmholtz": HelmholtzSet,
    "fractal-darcy": FractalDarcySet,
    "reaction-diffusion": ReactionDiffusionSet,
    "brusselator": BrusselatorSet,
    "glove": GloveSet,
    "plasticity": PlasticitySet,
}
DEFAULTS = (
    "european",
    "american",
    "american-market",
    "paper-options",
)  # what the shipped models and tables need
