"""The surrogate put to the test: measured errors, errors against time, attempts to break it."""

import time
from typing import cast

import numpy as np
import pandas as pd
import streamlit as st

from app import inputs, model_charts, resources
from app.documents.market_card import GROUPS, group_name
from app.documents.market_tables import under_markets
from app.pareto import TIMES, Engines, front_in_words
from pricing import price_frame
from pricing.bench import EngineResults
from pricing.bench_market_model import ModelResults
from pricing.engines.surrogate import SurrogateEngine
from pricing.random_books import random_from
from pricing.surrogate.market_model import NAME as MARKET_MODEL

_STATISTICS = {"rmse": "RMSE", "p99": "99 %", "max": "largest"}
_WORST = 20


def _show_measured(style: str) -> None:
    metrics = resources.metrics(style)
    box = metrics["box"]
    with st.container(horizontal=True):
        st.metric("Price RMSE, box", f"{box['price']['rmse']:.1e}", width="content")
        st.metric("Largest, box", f"{box['price']['max']:.1e}", width="content")
        st.metric(
            "Price RMSE, domain", f"{metrics['domain']['price']['rmse']:.1e}", width="content"
        )
        st.metric(
            "Relative L2 of V(S, t)", f"{metrics['surfaces']['relative_l2']:.1e}", width="content"
        )
    st.caption(
        f"{metrics['contracts']:,} fresh contracts each, K = 100. Box: |ln S/K| ≤ 0.5, 0.05 to 2 "
        "years, vol 10 to 60 %, r to 10 %, q to 8 %. Domain: all the surrogate was trained for."
    )
    with st.container(horizontal=True):
        what = str(st.selectbox("Quantity", list(box), key="accuracy of"))
        statistic = st.segmented_control(
            "Statistic",
            list(_STATISTICS),
            format_func=lambda name: _STATISTICS[name],
            default="p99",
            required=True,
        )
    regions = pd.DataFrame(
        [
            {
                **{k: row[k] for k in ("moneyness", "expiry", "volatility")},
                "error": row[what][statistic],
            }
            for row in metrics["regions"]
        ]
    )
    ends = (float(regions["error"].min()), float(regions["error"].max()))
    labels = regions["volatility"].unique()
    for column, label in zip(st.columns(len(labels)), labels, strict=True):
        table = regions[regions["volatility"] == label].pivot_table(
            index="expiry", columns="moneyness", values="error", sort=False
        )
        column.plotly_chart(
            model_charts.region_map(table, f"vol {label}", ends),
            alt=f"{_STATISTICS[statistic]} error of {what} by moneyness and expiry, volatility "
            f"{label}; the same numbers are in the table below",
        )
    with st.expander("The same as a table", icon=":material/table:"):
        st.dataframe(
            regions,
            hide_index=True,
            column_config={"error": st.column_config.NumberColumn(format="%.2e")},
        )
    if "histogram" in metrics:
        histogram = metrics["histogram"]
        st.plotly_chart(
            model_charts.error_histogram(
                histogram["edges"], histogram["counts"], box["price"]["p99"]
            ),
            alt="histogram of price errors in the box",
        )


def _show_pareto() -> None:
    st.subheader("Error against time")
    results = resources.results("engines", EngineResults)
    if results is None:
        st.info("Not measured yet: `make measure` does it.")
        return
    engines = cast("Engines", results["american"])
    for column, (title, key) in zip(st.columns(3), TIMES.items(), strict=True):
        column.plotly_chart(
            model_charts.pareto(engines, key, title),
            alt=f"price error against time per option for {title}, all engines",
        )
    table = pd.DataFrame(results["american"]).T[[*TIMES.values(), "price_rmse", "price_max"]]
    st.dataframe(
        table.rename(columns={key: f"{title}, µs" for title, key in TIMES.items()}),
        column_config={
            "price_rmse": st.column_config.NumberColumn("price RMSE", format="%.1e"),
            "price_max": st.column_config.NumberColumn("largest", format="%.1e"),
            **{f"{title}, µs": st.column_config.NumberColumn(format="%.1f") for title in TIMES},
        },
        placeholder="–",
    )
    st.markdown(front_in_words(engines))
    st.caption(
        f"American options, K = 100, truth: QdFp high precision; `{results['command']}` on "
        f"{results['machine']['cores']} cores. Surrogates: per row of a book of "
        f"{results['book']['rows']:,.0f} rows over {results['book']['states']:.0f} market states."
    )


def _show_market_model() -> None:
    """Show the errors of the model under curves and dividends, and its time beside the grid's."""
    st.subheader("Under curves and dividends")
    metrics = resources.metrics(MARKET_MODEL)
    errors = metrics["domain"]
    with st.container(horizontal=True):
        for name, words in (("price", "Price"), ("delta", "Delta"), ("vega", "Vega")):
            st.metric(f"{words} RMSE", f"{errors[name]['rmse']:.1e}", width="content")
        st.metric("Price, 99 %", f"{errors['price']['p99']:.1e}", width="content")
        st.metric("Largest", f"{errors['price']['max']:.1e}", width="content")
    st.caption(
        f"{metrics['contracts']:,} American options under markets never trained on, S = 100: "
        "regular cash dividends, sloped curves, 3 days to 2 years, vol 8 to 80 %."
    )
    shown = [("price", kind) for kind in _STATISTICS] + [("delta", "rmse"), ("vega", "rmse")]
    groups = pd.DataFrame(
        [
            {
                "": group_name(row, unit),
                "contracts": row["contracts"],
                **{f"{what}, {_STATISTICS[kind]}": row[what][kind] for what, kind in shown},
            }
            for key, unit in GROUPS.items()
            for row in metrics[key]
        ]
    )
    number = st.column_config.NumberColumn(format="%.1e")
    st.dataframe(groups, hide_index=True, column_config=dict.fromkeys(groups.columns[2:], number))
    results = resources.results("market_model", ModelResults)
    if results is None:
        return
    engines = under_markets(results)
    for column, (title, key) in zip(st.columns(3), TIMES.items(), strict=True):
        column.plotly_chart(
            model_charts.pareto(engines, key, title),
            alt=f"price error against time per option under markets for {title}",
        )
    st.markdown(front_in_words(engines))
    ratio = results["bumped_ladder_seconds"] / results["ladder_seconds"]
    st.caption(
        f"A book of {results['rows']:,} rows over {results['slices']} slices, one core, truth: "
        f"grids twice as fine as those of `fd`; `{results['command']}`. Its ladder of "
        f"{results['rungs']} rungs took {results['ladder_seconds']:.1f} s, {ratio:,.0f} times as "
        "fast as bumping `fd-fast`."
    )


def _show_attack(surrogates: SurrogateEngine, style: str) -> None:
    st.subheader("Try to break it")
    st.write(
        "Draws random contracts from the whole domain, prices them with AMO and with a referee, "
        "here and now, and shows the worst."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        count = st.number_input("Contracts", 100, 20_000, 2_000, 100)
        if st.button("Draw and price", type="primary"):
            st.session_state["attack"] = int(time.time_ns() % 2**32)
    seed = st.session_state.get("attack")
    if seed is None:
        return
    model = surrogates.american if style == "american" else surrogates.european
    ranges = {
        name: getattr(model.domain, name)
        for name in ("log_moneyness", "expiry", "volatility", "rate", "dividend_yield")
    }
    ranges["expiry"] = (0.002, ranges["expiry"][1])
    rng = np.random.default_rng(seed)
    book = random_from(ranges, int(count), rng, is_american=style == "american").to_frame()
    reference = resources.REFERENCES[style][0]
    start = time.perf_counter()
    found = price_frame(book, surrogates, greeks=False, error_bars=True, progress=False)
    middle = time.perf_counter()
    with st.spinner(f"{reference} prices {count:,} contracts …"):
        truth = price_frame(
            book, resources.engine(reference), greeks=False, errors="coerce", workers=1
        )
    stop = time.perf_counter()
    book["amo"], book[reference] = found["price"], truth["price"]
    book["error"], book["stated_error"] = found["price"] - truth["price"], found["price_error"]
    known = book[np.isfinite(book["error"])]
    within = float((known["error"].abs() <= known["stated_error"]).mean())
    with st.container(horizontal=True):
        st.metric("RMSE", f"{np.sqrt(np.mean(known['error'] ** 2)):.1e}", width="content")
        st.metric("Largest error", f"{known['error'].abs().max():.1e}", width="content")
        st.metric("Within the stated error", f"{within:.1%}", width="content")
        st.metric("AMO, ms", f"{1e3 * (middle - start):,.0f}", width="content")
        st.metric(f"{reference}, ms", f"{1e3 * (stop - middle):,.0f}", width="content")
    st.caption(
        f"seed {seed}. Every contract here has its own market state, which is AMO's worst case for "
        "speed; in a book, rows share states."
    )
    st.plotly_chart(
        model_charts.truth_against_found(known[reference].to_numpy(), known["error"].to_numpy()),
        alt="errors of this draw against the true prices; the worst are in the table below",
    )
    worst = known.loc[known["error"].abs().nlargest(_WORST).index]
    links = [inputs.link_to(row) for row in worst.to_dict("records")]
    st.dataframe(
        worst.assign(open=links),
        hide_index=True,
        column_config={
            "open": st.column_config.LinkColumn("open", display_text="Price page"),
            "error": st.column_config.NumberColumn(format="%.2e"),
            "stated_error": st.column_config.NumberColumn("stated error", format="%.2e"),
        },
    )


def main() -> None:
    """Draw the page."""
    st.title("Accuracy")
    surrogates = resources.surrogates()
    if surrogates is not None:
        style = st.segmented_control(
            "Model", ("american", "european"), default="american", required=True
        )
        _show_measured(style)
    _show_pareto()
    if surrogates is not None and surrogates.market is not None:
        _show_market_model()
    if surrogates is not None:
        _show_attack(surrogates, style)


main()
