"""American options under curves and cash dividends, coded for an operator.

The input function is what an option sees of its market up to its expiry: at each ex-date and at
four moments between now and expiry, the payment over the spot and the integrals of rate and borrow
so far. Times are shares of the expiry; years enter only through these integrals and σ√T.

The field is the value of options of unit strike over the coordinates of :func:`code`, of the form

    American = offset + scale × output,    output > 0.

The offset is a floor in closed form: the European value, or that of a plan to exercise at an
ex-date, just before the spot falls for a call and just after for a put. The plans are weighed by
how good they are, which is smooth and never above the best. The scale is b e / (b + e), with e the
offset and b the most that early exercise can add: the strike's interest for a put, payments and
borrow for a call.

Everything is in torch, so that training data and Greeks come from the same lines.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amo.arrays import BoolArray, FloatArray, IntArray
from pricing.options import Options
from pricing.slopes import QUARTERS

COORDINATES = 13  # of the field
FEATURES = 6  # of the input function
DIRECTIONS = ("log_spot", "volatility", "rate", "borrow", "dividends")  # of first derivatives
_NEWTON = 7  # steps to the strike's place among terminal spots; the last is differentiated
_SMALL = 1e-12
_WIDTH = 0.2  # of what early exercise can add: plans that differ by less are weighed
_PAYMENT, _INTEREST = 0.02, 0.02  # below these the input function is about linear, above in logs
_LITTLE = 0.002  # of an integral: below it the shape of a curve fades


class Terms(NamedTuple):
    """Options of some market slices: tensors that broadcast to (slices, rows[, payments]).

    Attributes
    ----------
    log_moneyness, volatility, is_call
        Of the options: ln(S/K), per square root of a year, true for calls.
    expiry
        Years.
    time, cash
        Of the payments: years from now, and cash over the spot, zero where there is none.
    rate_to, borrow_to
        The integrals of rate and borrow up to the payments.
    rate, borrow
        The same up to expiry.
    rate_along, borrow_along
        The same up to the quarters of the expiry, (slices, rows, 4).
    """

    log_moneyness: Tensor
    volatility: Tensor
    is_call: Tensor
    expiry: Tensor
    time: Tensor
    cash: Tensor
    rate_to: Tensor
    borrow_to: Tensor
    rate: Tensor
    borrow: Tensor
    rate_along: Tensor
    borrow_along: Tensor

    @property
    def share(self) -> Tensor:
        """Times of the payments over the expiry."""
        return self.time / self.expiry.unsqueeze(-1)

    def moved(
        self,
        *,
        log_spot: Tensor | float = 0.0,
        volatility: Tensor | float = 0.0,
        rate: Tensor | float = 0.0,
        borrow: Tensor | float = 0.0,
        dividends: Tensor | float = 0.0,
    ) -> "Terms":
        """Return the same with spot or dividends scaled and volatility or curves shifted."""
        spot, more, up, away = (_last(x) for x in (log_spot, dividends, rate, borrow))
        along = self.expiry.unsqueeze(-1) * self.expiry.new_tensor(QUARTERS)
        return self._replace(
            log_moneyness=self.log_moneyness + log_spot,
            volatility=self.volatility + volatility,
            cash=self.cash * (1.0 + more) * _exp(-spot),
            rate_to=self.rate_to + up * self.time,
            borrow_to=self.borrow_to + away * self.time,
            rate=self.rate + rate * self.expiry,
            borrow=self.borrow + borrow * self.expiry,
            rate_along=self.rate_along + up * along,
            borrow_along=self.borrow_along + away * along,
        )


def terms_of(
    options: Options,
    rows: IntArray,
    device: torch.device | str = "cpu",
    n_payments: int | None = None,
) -> Terms:
    """Return the terms of options under markets, by the positions (slices, rows) of their rows.

    Rows of one slice have the same market, expiry and dividends over the spot. Without
    ``n_payments``, there are as many as any slice has.
    """
    states = rows[:, 0]
    slices, spot, expiry = (
        options.market_slices.take(states),
        options.spot[states],
        options.expiry[states],
    )
    widest = int(slices.n_payments.max(initial=0)) if n_payments is None else n_payments
    slices = slices.first(widest)
    time, cash = slices.time, slices.cash
    if not widest:  # a payment of nothing, so that all terms have payments
        time, cash = expiry[:, None], np.zeros((len(states), 1))
    along = expiry[:, None] * np.array(QUARTERS)

    def of_rows(column: FloatArray | BoolArray) -> Tensor:
        return torch.from_numpy(column).to(device)

    def of_slices(column: FloatArray) -> Tensor:
        return torch.from_numpy(column[:, None]).to(device)

    return Terms(
        of_rows(np.log(options.spot / options.strike)[rows]),
        of_rows(options.volatility[rows]),
        of_rows(options.is_call[rows]),
        *(
            of_slices(column)
            for column in (
                expiry,
                time,
                cash / spot[:, None],
                slices.rate_integral(time),
                slices.borrow_integral(time),
                slices.rate_integral(expiry),
                slices.borrow_integral(expiry),
                slices.rate_integral(along),
                slices.borrow_integral(along),
            )
        ),
    )


class Coded(NamedTuple):
    """Coordinates (slices, rows, COORDINATES), and the output form per unit strike.

    ``floor`` is the best of the plans: no value lies below it.
    """

    queries: Tensor
    offset: Tensor
    scale: Tensor
    floor: Tensor


def input_function(terms: Terms) -> tuple[Tensor, Tensor, Tensor]:
    """Return points (slices, n, 1), features (slices, n, FEATURES) and the mask of real points.

    A point is an ex-date or a quarter of the expiry. Its features are what is paid there and what
    has been paid so far, over the spot; how far the integrals of rate and borrow are ahead of even
    ones; and, at every point, these integrals up to expiry. Of every slice its first row is read:
    rows of a slice share the input function.
    """
    share, cash = terms.share[:, 0], terms.cash[:, 0]
    quarters = terms.expiry.new_tensor(QUARTERS).expand(len(share), -1)
    points = torch.cat([share, quarters], dim=1)
    paid = torch.cat([cash, torch.zeros_like(quarters)], dim=1)
    is_past = points.unsqueeze(2) >= share.unsqueeze(1)
    so_far = (is_past * cash.unsqueeze(1)).sum(-1)
    columns = [torch.log1p(paid / _PAYMENT), torch.log1p(so_far / _PAYMENT)]
    for to, along, whole in (
        (terms.rate_to, terms.rate_along, terms.rate),
        (terms.borrow_to, terms.borrow_along, terms.borrow),
    ):
        total = whole[:, :1]
        ahead = torch.cat([to[:, 0], along[:, 0]], dim=1) - points * total
        columns += [ahead / (total + _LITTLE), torch.log1p(total / _INTEREST).expand_as(points)]
    is_real = torch.cat([cash > 0, torch.ones_like(quarters, dtype=torch.bool)], dim=1)
    return points.unsqueeze(-1), torch.stack(columns, dim=-1), is_real


def european(terms: Terms) -> Tensor:
    """Return European values per unit strike: the formula of :mod:`pricing.cash_dividends`."""
    s = terms.volatility * terms.expiry.sqrt()
    asset = terms.log_moneyness.exp()
    a = terms.cash * asset.unsqueeze(-1) * (terms.borrow_to - terms.rate_to).exp()
    left = 1.0 - terms.share
    s_i = s.unsqueeze(-1) * left
    target = (terms.borrow - terms.rate).exp()
    paid = a.sum(-1)

    def newton(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the next z, the slope there, and what is paid at z."""
        grown = asset * (s * z - 0.5 * s * s).exp()
        each = a * (s_i * z.unsqueeze(-1) - 0.5 * s_i * s_i).exp()
        slope = s * grown - (s_i * each).sum(-1)
        return z - (grown - each.sum(-1) - target) / slope, slope, each

    with torch.no_grad():
        z = (((target + paid) / asset).log() + 0.5 * s * s) / s
        for _ in range(_NEWTON):
            z, _, _ = newton(z)
    z, slope, each = newton(z)
    value = asset * _normal(s - z) - target * _normal(-z)
    value = value - (a * _normal(s_i - z.unsqueeze(-1))).sum(-1)
    first = torch.minimum(terms.time.unsqueeze(-1), terms.time.unsqueeze(-2))
    last = torch.maximum(terms.time.unsqueeze(-1), terms.time.unsqueeze(-2))
    bridge = first * (1.0 - last / terms.expiry.unsqueeze(-1).unsqueeze(-1))
    spread = torch.expm1(bridge * terms.volatility.square().unsqueeze(-1).unsqueeze(-1))
    variance = (each.unsqueeze(-1) * each.unsqueeze(-2) * spread).sum((-1, -2))
    value = value + 0.5 * _density(z) * variance / slope
    parity = torch.where(terms.is_call, torch.zeros_like(asset), asset - paid - target)
    return (-terms.borrow).exp() * (value - parity).clamp(min=0.0)


def plans(terms: Terms) -> Tensor:
    """Return the values of plans to exercise at each ex-date, (slices, rows, payments).

    The forward's own distribution is taken as lognormal with the volatility of the spot, which is
    less than it has: the values are a floor. Without a payment, the plan is worthless.
    """
    spot = terms.log_moneyness.exp().unsqueeze(-1)
    a = terms.cash * spot * (terms.borrow_to - terms.rate_to).exp()
    is_call = terms.is_call.unsqueeze(-1)
    fallen = torch.where(is_call, a.cumsum(-1) - a, a.cumsum(-1))
    asset = (spot - fallen).clamp(min=0.05 * spot.detach())
    target = (terms.borrow_to - terms.rate_to).exp()
    deviation = terms.volatility.unsqueeze(-1) * terms.time.clamp(min=_SMALL).sqrt()
    ratio = (asset / target).log() / deviation
    sign = torch.where(is_call, 1.0, -1.0).to(spot)
    value = sign * (
        asset * _normal(sign * (ratio + 0.5 * deviation))
        - target * _normal(sign * (ratio - 0.5 * deviation))
    )
    return torch.where(terms.cash > 0, (-terms.borrow_to).exp() * value.clamp(min=0.0), 0.0)


def code(terms: Terms) -> Coded:
    """Return the coordinates of options, and the floor and size of their values."""
    s = terms.volatility * terms.expiry.sqrt()
    x = terms.log_moneyness
    spot = x.exp()
    held, early = european(terms), plans(terms)
    is_paid = terms.cash > 0
    interest = -torch.expm1(-terms.rate)
    dividends = terms.cash * (-terms.rate_to).exp()
    earned = spot * (dividends.sum(-1) - torch.expm1(-terms.borrow))
    most = torch.where(terms.is_call, earned, interest)
    width = (_WIDTH * most * held / (most + held + _SMALL) + _SMALL).unsqueeze(-1)
    every = torch.cat([held.unsqueeze(-1), early], dim=-1)
    some = torch.cat([torch.ones_like(held, dtype=torch.bool).unsqueeze(-1),
                      is_paid.expand_as(early)], dim=-1)  # fmt: skip
    weight = torch.where(some, every / width, -math.inf).softmax(-1)
    offset = (weight * every).sum(-1)
    scale = most * offset / (most + offset + _SMALL)
    share = terms.share
    when = (weight[..., 1:] * share).sum(-1) + weight[..., 0]
    among = torch.where(some[..., 1:], early / width, -1e9).softmax(-1)
    gain = torch.where(is_paid.any(-1), (among * early).sum(-1) - held, 0.0)
    last = torch.where(is_paid, share, 0.0).amax(-1)
    first = torch.where(is_paid, share, 1.0).amin(-1)
    is_last = is_paid & (share >= last.unsqueeze(-1))
    a = terms.cash * (terms.borrow_to - terms.rate_to).exp()
    forward = ((1.0 - a.sum(-1)).clamp(min=0.05)).log() + x + terms.rate - terms.borrow
    columns = [
        8.0 / 3.0 * torch.tanh(forward / s / 8.0),
        s.log() + 1.5,
        torch.where(terms.is_call, 1.0, -1.0).to(s),
        2.0 * x,
        torch.log1p(2.0 * terms.rate / s.square()) / 1.5 - 1.0,
        torch.log1p(2.0 * terms.borrow / s.square()) / 1.5 - 0.5,
        torch.log1p(5.0 * a.sum(-1) / s) - 0.7,
        torch.tanh(gain / (0.3 * s)),
        2.0 * when - 1.0,
        first.sqrt() * 2.0 - 1.0,
        (1.0 - last).clamp(min=_SMALL).sqrt() * 2.0 - 1.0,
        torch.log1p(5.0 * (a * is_last).sum(-1) / s) - 0.4,
        (scale / s + 1e-3).log() / 2.0 + 1.5,
    ]
    shape = torch.broadcast_shapes(*(column.shape for column in columns))
    queries = torch.stack([column.expand(shape) for column in columns], dim=-1)
    return Coded(queries, offset, scale, every.amax(-1))


def _normal(x: Tensor) -> Tensor:
    return 0.5 * torch.erfc(-x / math.sqrt(2.0))


def _density(x: Tensor) -> Tensor:
    return (-0.5 * x * x).exp() / math.sqrt(2.0 * math.pi)


def _last(x: Tensor | float) -> Tensor | float:
    return x.unsqueeze(-1) if isinstance(x, Tensor) else x


def _exp(x: Tensor | float) -> Tensor | float:
    return x.exp() if isinstance(x, Tensor) else math.exp(x)
