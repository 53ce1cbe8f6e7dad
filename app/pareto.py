"""Which engines nothing beats: no other is both faster and more exact."""

from collections.abc import Mapping

TIMES = {
    "price": "microseconds_price",
    "price and five Greeks": "microseconds_five_greeks",
    "implied volatility": "microseconds_implied_vol",
}
Engines = Mapping[str, Mapping[str, float]]


def front(engines: Engines, time: str) -> list[str]:
    """Return the engines, fastest first, of which none else is as fast and as exact at once."""
    timed = {name: row for name, row in engines.items() if time in row}
    order = sorted(timed, key=lambda name: (timed[name][time], timed[name]["price_rmse"]))
    found: list[str] = []
    for name in order:
        if not found or timed[name]["price_rmse"] < timed[found[-1]]["price_rmse"]:
            found.append(name)
    return found


def front_in_words(engines: Engines) -> str:
    """Return one sentence for each thing that is timed, and what keeps ``amo`` off a front."""
    parts = []
    for title, time in TIMES.items():
        best = front(engines, time)
        if not best:
            continue
        text = f"{title}: " + ", ".join(f"`{name}`" for name in best)
        if time in engines["amo"] and "amo" not in best:
            ours = engines["amo"]
            ahead = [
                f"`{name}`"
                for name in best
                if engines[name][time] <= ours[time]
                and engines[name]["price_rmse"] <= ours["price_rmse"]
            ]
            text += f" (`amo` is behind {', '.join(ahead)}, as fast and as exact)"
        parts.append(text)
    return "No other engine is both faster and more exact than these: " + "; ".join(parts) + "."
