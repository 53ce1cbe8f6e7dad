"""Smiles and what is drawn through them."""

import numpy as np
import pandas as pd

from pricing import implied_vol_frame
from pricing.analysis.examples import sample_chain
from pricing.analysis.smiles import smiles, term_structure, volatility_surface


def inverted() -> pd.DataFrame:
    return implied_vol_frame(sample_chain())


def test_sample_chain_has_quotes_and_a_few_bad_ones_with_reasons() -> None:
    found = inverted()
    assert found["implied_volatility"].notna().sum() > 100
    assert (found.loc[found["implied_volatility"].isna(), "error"] != "").all()


def test_smiles_are_measured_from_the_forward() -> None:
    smile = smiles(inverted())
    forward = 100.0 * np.exp((0.03 - 0.01) * smile["expiry"])
    np.testing.assert_allclose(smile["log_moneyness"], np.log(smile["strike"] / forward))
    is_call = smile["option_type"] == "call"
    out = smile["strike"] > forward
    assert (smile["is_out_of_the_money"] == (is_call == out)).all()


def test_term_structure_lies_between_its_neighbouring_quotes() -> None:
    smile = smiles(inverted())
    for expiry, volatility in term_structure(smile).itertuples(index=False):
        quotes = smile[(smile["expiry"] == expiry) & smile["is_out_of_the_money"]]
        nearest = quotes.loc[quotes["log_moneyness"].abs().nsmallest(4).index, "implied_volatility"]
        assert nearest.min() <= volatility <= nearest.max()


def test_surface_passes_through_quotes_and_is_not_extrapolated() -> None:
    smile = pd.DataFrame(
        {
            "expiry": 1.0,
            "strike": [90.0, 100.0, 110.0],
            "log_moneyness": [-0.1, 0.0, 0.1],
            "option_type": "put",
            "implied_volatility": [0.3, 0.2, 0.25],
            "is_out_of_the_money": [True, True, False],
        }
    )
    surface = volatility_surface(smile, np.array([-0.2, -0.1, -0.05, 0.1, 0.2]))
    np.testing.assert_allclose(surface.iloc[0], [np.nan, 0.3, 0.25, 0.25, np.nan])
