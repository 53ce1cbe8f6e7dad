"""One HTML page about a marked chain: figures that answer to the mouse, and tables."""

import html

import pandas as pd

from pricing import chain_pictures as pictures
from pricing.marked_chains import MarkedChain

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em;
       color: #222; background: #fff; }
table { border-collapse: collapse; font-size: 13px; }
td, th { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; }
.wide { overflow-x: auto; }
.note { color: #666; }
"""


def headline(marked: MarkedChain) -> list[str]:
    """Return in a few sentences what was found and how good it is."""
    found, fit = marked.summary(), marked.fit
    n_bad = int(found["violations"])
    gap = "not known" if pd.isna(found["gap"]) else f"{found['gap']:.2f} points"
    arbitrage = "It has no arbitrage on a fine grid of strikes and times."
    if n_bad:
        arbitrage = f"It allows arbitrage at {n_bad} places of a fine grid; they are listed."
    return [
        (
            f"{fit.underlying}, {fit.market.as_of:%Y-%m-%d %H:%M}: {found['quotes']:,.0f} quotes "
            f"of {found['expiries']:.0f} expiries, in the layout of {marked.chain.layout}. "
            f"Spot {fit.market.spot:.4f}."
        ),
        (
            f"{found['inverted']:.1%} of the quotes whose ask is above what exercise pays have a "
            "volatility or an interval. Calls and puts of a strike around the forward differ by "
            f"{gap} of volatility in the median, beyond two weeks."
        ),
        (
            f"The surface ({marked.surface.method}) lies between bid and ask for "
            f"{found['inside']:.1%} of {found['liquid']:,.0f} liquid quotes; half of them it "
            f"misses by less than {found['off']:.2f} points of their mid."
        ),
        arbitrage,
    ]


def as_html(marked: MarkedChain) -> str:
    """Return the page; it needs no network, plotly's script is inside."""
    figures = [
        pictures.smiles(marked),
        pictures.forwards(marked),
        pictures.term_structure(marked),
        pictures.surface_3d(marked, with_quotes=True),
    ]
    parts = [
        f'<div class="wide">{figure.to_html(full_html=False, include_plotlyjs=number == 0)}</div>'
        for number, figure in enumerate(figures)
    ]
    dropped = ", ".join(f"{name} {n:,}" for name, n in marked.chain.dropped.items()) or "none"
    assumed = "".join(
        f"<li>{html.escape(text)}</li>" for text in (*marked.chain.assumed, *marked.fit.assumed)
    )
    title = f"{html.escape(marked.fit.underlying)}: forwards, volatilities, surface"
    said = "".join(f"<p>{html.escape(line)}</p>" for line in headline(marked))
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head><body>"
        f"<h1>{title}</h1>{said}{''.join(parts)}"
        f"<h2>Market by expiry</h2>{_table(marked.fit.table)}"
        f"<h2>Term structure</h2>{_table(pictures.term_table(marked))}"
        + (f"<h2>Arbitrage</h2>{_table(marked.violations)}" if len(marked.violations) else "")
        + f"<h2>What was assumed</h2><ul>{assumed}</ul>"
        f"<p class='note'>Quotes left out of the fits: {html.escape(dropped)}.</p></body></html>"
    )


def _table(frame: pd.DataFrame) -> str:
    text = frame.to_html(index=False, float_format=lambda value: f"{value:.5g}", border=0)
    return f'<div class="wide">{text}</div>'
