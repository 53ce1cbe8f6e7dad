"""How vendors lay out a chain of quotes: which columns hold what, and in which unit.

Names are compared in lower case. A layout is recognised by the columns that it needs; where several
fit, the one that needs the most.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FIELDS = (
    "underlying",
    "expiry",
    "strike",
    "option_type",
    "bid",
    "ask",
    "last",
    "bid_size",
    "ask_size",
    "volume",
    "open_interest",
    "quote_time",
    "spot",
    "implied_volatility",
    "exercise",
)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One vendor's columns.

    Attributes
    ----------
    name
        Of the vendor, for reports.
    columns
        Which column holds each of :data:`FIELDS`; of several names the first that is there.
    needs
        The columns by which it is recognised.
    symbol
        The column of OCC symbols or of instrument names, from which missing fields are read.
    strike_unit
        What one unit of its strike column is in currency.
    time_unit
        Of quote times that are whole numbers: "ms" or "ns" since 1970.
    time_of_day
        When quotes of a bare date were taken, in New York.
    per_cent
        Whether its implied volatilities are in per cent.
    coin
        Whether quotes are in units of the underlying.
    sides
        Of wide layouts: prefixes of the call's and of the put's columns.
    notes
        What a reader of the report should know.
    """

    name: str
    columns: Mapping[str, tuple[str, ...]]
    needs: tuple[str, ...]
    symbol: str | None = None
    strike_unit: float = 1.0
    time_unit: Literal["ms", "ns"] | None = None
    time_of_day: str = "16:00"
    per_cent: bool = False
    coin: bool = False
    sides: tuple[str, str] | None = None
    notes: tuple[str, ...] = field(default=())


LAYOUTS: tuple[Layout, ...] = (
    Layout(
        name="yfinance",
        needs=("contractsymbol", "strike", "bid", "ask"),
        symbol="contractsymbol",
        columns={
            "strike": ("strike",),
            "expiry": ("expiration", "expiry", "expirationdate"),
            "option_type": ("option_type", "optiontype", "type"),
            "bid": ("bid",),
            "ask": ("ask",),
            "last": ("lastprice",),
            "volume": ("volume",),
            "open_interest": ("openinterest",),
            "implied_volatility": ("impliedvolatility",),
            "spot": ("underlying_price", "underlyingprice", "spot"),
        },
        notes=("lastTradeDate is the time of a trade, not of the quote: it is not read",),
    ),
    Layout(
        name="OpenBB",
        needs=("underlying_symbol", "expiration", "strike", "option_type", "bid", "ask"),
        symbol="contract_symbol",
        columns={
            "underlying": ("underlying_symbol",),
            "expiry": ("expiration",),
            "strike": ("strike",),
            "option_type": ("option_type",),
            "bid": ("bid",),
            "ask": ("ask",),
            "last": ("last_trade_price",),
            "bid_size": ("bid_size",),
            "ask_size": ("ask_size",),
            "volume": ("volume",),
            "open_interest": ("open_interest",),
            "quote_time": ("bid_time", "eod_date"),
            "spot": ("underlying_price",),
            "implied_volatility": ("implied_volatility",),
        },
    ),
    Layout(
        name="Cboe DataShop",
        needs=(
            "quote_date",
            "underlying_symbol",
            "expiration",
            "strike",
            "option_type",
            "bid_1545",
        ),
        time_of_day="15:45",
        columns={
            "underlying": ("underlying_symbol",),
            "expiry": ("expiration",),
            "strike": ("strike",),
            "option_type": ("option_type",),
            "bid": ("bid_1545",),
            "ask": ("ask_1545",),
            "bid_size": ("bid_size_1545",),
            "ask_size": ("ask_size_1545",),
            "volume": ("trade_volume",),
            "open_interest": ("open_interest",),
            "quote_time": ("quote_date",),
            "spot": ("active_underlying_price_1545", "implied_underlying_price_1545"),
            "implied_volatility": ("implied_volatility_1545",),
        },
        notes=("on half days these quotes are of 12:45, not of 15:45",),
    ),
    Layout(
        name="OptionMetrics",
        needs=("date", "exdate", "strike_price", "cp_flag", "best_bid", "best_offer"),
        strike_unit=1e-3,
        columns={
            "underlying": ("ticker", "secid"),
            "expiry": ("exdate",),
            "strike": ("strike_price",),
            "option_type": ("cp_flag",),
            "bid": ("best_bid",),
            "ask": ("best_offer",),
            "volume": ("volume",),
            "open_interest": ("open_interest",),
            "quote_time": ("date",),
            "spot": ("close", "spot"),
            "implied_volatility": ("impl_volatility",),
            "exercise": ("exercise_style",),
        },
        notes=("strikes are in thousandths",),
    ),
    Layout(
        name="ORATS",
        needs=("expirdate", "strike", "callbidprice", "callaskprice", "putbidprice", "putaskprice"),
        sides=("call", "put"),
        columns={
            "underlying": ("ticker",),
            "expiry": ("expirdate",),
            "strike": ("strike",),
            "bid": ("bidprice",),
            "ask": ("askprice",),
            "bid_size": ("bidsize",),
            "ask_size": ("asksize",),
            "volume": ("volume",),
            "open_interest": ("openinterest",),
            "quote_time": ("updatedat", "quotedate", "tradedate"),
            "spot": ("spotprice", "stockprice"),
            "implied_volatility": ("midiv",),
        },
        notes=("a row holds a call and a put",),
    ),
    Layout(
        name="Tradier",
        needs=("underlying", "expiration_date", "strike", "option_type", "bid", "ask", "bid_date"),
        symbol="symbol",
        time_unit="ms",
        columns={
            "underlying": ("underlying",),
            "expiry": ("expiration_date",),
            "strike": ("strike",),
            "option_type": ("option_type",),
            "bid": ("bid",),
            "ask": ("ask",),
            "last": ("last",),
            "bid_size": ("bidsize",),
            "ask_size": ("asksize",),
            "volume": ("volume",),
            "open_interest": ("open_interest",),
            "quote_time": ("bid_date",),
            "implied_volatility": ("greeks.mid_iv", "greeks.smv_vol"),
        },
    ),
    Layout(
        name="Deribit",
        needs=("instrument_name", "best_bid_price", "best_ask_price"),
        symbol="instrument_name",
        time_unit="ms",
        per_cent=True,
        coin=True,
        columns={
            "bid": ("best_bid_price",),
            "ask": ("best_ask_price",),
            "last": ("last_price",),
            "bid_size": ("best_bid_amount",),
            "ask_size": ("best_ask_amount",),
            "open_interest": ("open_interest",),
            "quote_time": ("timestamp",),
            "spot": ("index_price", "underlying_price"),
            "implied_volatility": ("mark_iv",),
        },
        notes=("options are European and expire at 08:00 UTC",),
    ),
    Layout(
        name="Polygon",
        needs=("details.strike_price", "details.expiration_date", "details.contract_type"),
        symbol="details.ticker",
        time_unit="ns",
        columns={
            "underlying": ("underlying_asset.ticker",),
            "expiry": ("details.expiration_date",),
            "strike": ("details.strike_price",),
            "option_type": ("details.contract_type",),
            "bid": ("last_quote.bid",),
            "ask": ("last_quote.ask",),
            "bid_size": ("last_quote.bid_size",),
            "ask_size": ("last_quote.ask_size",),
            "open_interest": ("open_interest",),
            "quote_time": ("last_quote.last_updated",),
            "spot": ("underlying_asset.price",),
            "implied_volatility": ("implied_volatility",),
            "exercise": ("details.exercise_style",),
        },
    ),
    Layout(
        name="ThetaData v2",
        needs=("root", "exp", "strike", "right", "bid", "ask", "ms_of_day"),
        strike_unit=1e-3,
        columns={
            "underlying": ("root",),
            "expiry": ("exp",),
            "strike": ("strike",),
            "option_type": ("right",),
            "bid": ("bid",),
            "ask": ("ask",),
            "bid_size": ("bid_size",),
            "ask_size": ("ask_size",),
            "quote_time": ("date",),
            "spot": ("underlying_price",),
        },
        notes=("strikes are in tenths of a cent",),
    ),
    Layout(
        name="ThetaData v3",
        needs=("symbol", "expiration", "strike", "right", "bid", "ask", "timestamp"),
        columns={
            "underlying": ("symbol",),
            "expiry": ("expiration",),
            "strike": ("strike",),
            "option_type": ("right",),
            "bid": ("bid",),
            "ask": ("ask",),
            "bid_size": ("bid_size",),
            "ask_size": ("ask_size",),
            "quote_time": ("timestamp",),
            "spot": ("underlying_price",),
        },
    ),
    Layout(
        name="Databento",
        needs=("instrument_class", "expiration", "strike_price", "bid_px_00", "ask_px_00"),
        symbol="raw_symbol",
        time_unit="ns",
        columns={
            "underlying": ("underlying",),
            "expiry": ("expiration",),
            "strike": ("strike_price",),
            "option_type": ("instrument_class",),
            "bid": ("bid_px_00",),
            "ask": ("ask_px_00",),
            "bid_size": ("bid_sz_00",),
            "ask_size": ("ask_sz_00",),
            "quote_time": ("ts_recv", "ts_event"),
        },
        notes=("whole numbers are prices in units of 1e-9",),
    ),
    Layout(
        name="Alpaca",
        needs=("symbol", "latestquote.bp", "latestquote.ap"),
        symbol="symbol",
        columns={
            "bid": ("latestquote.bp",),
            "ask": ("latestquote.ap",),
            "bid_size": ("latestquote.bs",),
            "ask_size": ("latestquote.as",),
            "quote_time": ("latestquote.t",),
            "implied_volatility": ("impliedvolatility",),
        },
        notes=("quotes of the free feed are modified",),
    ),
    Layout(
        name="SpiderRock",
        needs=("okey_tk", "okey_xx", "okey_cp", "bidprc", "askprc"),
        columns={
            "underlying": ("okey_tk",),
            "expiry": ("okey_dt",),
            "strike": ("okey_xx",),
            "option_type": ("okey_cp",),
            "bid": ("bidprc",),
            "ask": ("askprc",),
            "quote_time": ("tradingdate",),
            "spot": ("usrcls", "synspot"),
            "implied_volatility": ("srvol",),
        },
    ),
    Layout(
        name="historicaloptiondata",
        needs=("datadate", "underlyingsymbol", "expiration", "strike", "type", "bid", "ask"),
        columns={
            "underlying": ("underlyingsymbol",),
            "expiry": ("expiration",),
            "strike": ("strike",),
            "option_type": ("type",),
            "bid": ("bid",),
            "ask": ("ask",),
            "last": ("last",),
            "volume": ("volume",),
            "open_interest": ("openinterest",),
            "quote_time": ("datadate",),
            "spot": ("underlyingprice",),
        },
    ),
    Layout(
        name="plain",
        needs=("expiry", "strike", "option_type", "bid", "ask"),
        columns={name: (name,) for name in FIELDS},
    ),
)
