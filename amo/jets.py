"""Values with chosen first and second derivatives, carried forwards through a computation.

A jet holds f, every ∂f/∂x_i and some ∂²f/∂x_i∂x_j, written f_i and f_ij, and follows

    (f g)_i = f_i g + f g_i,    (f g)_ij = f_ij g + f_i g_j + f_j g_i + f g_ij,
    φ(f)_i = φ'(f) f_i,         φ(f)_ij = φ'(f) f_ij + φ''(f) f_i f_j.

All of them lie in one tensor, so that a linear map is one matrix product for all. The functions
here take jets and plain tensors alike: code that is written with them, such as the coordinates of
:mod:`pricing.surrogate.encoding`, gives numbers or jets as it is given numbers or jets. Nothing is
kept for a backward pass.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, cast, overload

import torch
from torch import Tensor, nn
from torch.nn import functional

Pairs: TypeAlias = tuple[tuple[int, int], ...]


class Jet:
    """A value and its derivatives in ``n_directions`` directions.

    Parameters
    ----------
    parts
        (1 + directions + pairs, ...): the value, its first and its second derivatives.
    n_directions, pairs
        How many directions there are, and which pairs of them have a second derivative.
    """

    __slots__ = ("n_directions", "pairs", "parts")

    def __init__(self, parts: Tensor, n_directions: int, pairs: Pairs) -> None:
        self.parts, self.n_directions, self.pairs = parts, n_directions, pairs

    @classmethod
    def variable(cls, value: Tensor, direction: int, n_directions: int, pairs: Pairs) -> "Jet":
        """Return the variable of one direction."""
        jet = cls.constant(value, n_directions, pairs)
        jet.parts[1 + direction] = 1.0
        return jet

    @classmethod
    def constant(cls, value: Tensor, n_directions: int, pairs: Pairs) -> "Jet":
        """Return a value that does not change."""
        parts = value.new_zeros((1 + n_directions + len(pairs), *value.shape))
        parts[0] = value
        return cls(parts, n_directions, pairs)

    @property
    def value(self) -> Tensor:
        """The value."""
        return self.parts[0]

    @property
    def firsts(self) -> Tensor:
        """The first derivatives, (directions, ...)."""
        return self.parts[1 : 1 + self.n_directions]

    def first(self, direction: int) -> Tensor:
        """Return the first derivative in a direction."""
        return self.parts[1 + direction]

    def second(self, pair: int) -> Tensor:
        """Return the second derivative of a pair, by its place in ``pairs``."""
        return self.parts[1 + self.n_directions + pair]

    def of(self, parts: Tensor) -> "Jet":
        """Return other parts with the same derivatives."""
        return Jet(parts, self.n_directions, self.pairs)

    def map(self, linear: Callable[[Tensor], Tensor]) -> "Jet":
        """Apply a linear map to all parts: it need not look at the first axis."""
        return self.of(linear(self.parts))

    def through(self, value: Tensor, slope: Tensor, bend: Tensor | None) -> "Jet":
        """Return φ(f) from φ, φ' and φ'' at the value; without pairs φ'' is not needed."""
        parts = slope * self.parts
        parts[0] = value
        if bend is not None:
            for number, (i, j) in enumerate(self.pairs):
                parts[1 + self.n_directions + number].addcmul_(bend, self.first(i) * self.first(j))
        return self.of(parts)

    def __add__(self, other: "float | Tensor | Jet") -> "Jet":
        if isinstance(other, Jet):
            return self.of(self.parts + other.parts)
        return self._shifted(self.value + other)

    def _shifted(self, value: Tensor) -> "Jet":
        parts = self.parts.expand(len(self.parts), *value.shape).clone()
        parts[0] = value
        return self.of(parts)

    def __sub__(self, other: "float | Tensor | Jet") -> "Jet":
        return self.of(self.parts - other.parts) if isinstance(other, Jet) else self + (-other)

    def __rsub__(self, other: float | Tensor) -> "Jet":
        return -self + other

    def __neg__(self) -> "Jet":
        return self.of(-self.parts)

    def __mul__(self, other: "float | Tensor | Jet") -> "Jet":
        if not isinstance(other, Jet):
            return self.of(self.parts * other)
        parts = self.parts * other.value + other.parts * self.value
        parts[0] = self.value * other.value
        for number, (i, j) in enumerate(self.pairs):
            cross = self.first(i) * other.first(j) + self.first(j) * other.first(i)
            parts[1 + self.n_directions + number] += cross
        return self.of(parts)

    def __truediv__(self, other: "float | Tensor | Jet") -> "Jet":
        return self * (_inverse(other) if isinstance(other, Jet) else 1.0 / other)

    def __rtruediv__(self, other: float | Tensor) -> "Jet":
        return _inverse(self) * other

    __radd__, __rmul__ = __add__, __mul__


Number = TypeVar("Number", Tensor, Jet)


def _inverse(x: Jet) -> Jet:
    y = 1.0 / x.value
    return x.through(y, -y * y, 2.0 * y * y * y)


def affine(layer: nn.Linear, x: Jet, memory: Tensor | None = None) -> Jet:
    """Apply a layer to jets of vectors: what it adds changes the value alone.

    ``memory``, one number for each of the answer, is written to: new memory costs as much as half
    of the product.
    """
    if memory is None:
        parts = functional.linear(x.parts, layer.weight)
    else:
        torch.mm(x.parts.flatten(0, -2), layer.weight.T, out=memory.view(-1, layer.out_features))
        parts = memory.view(*x.parts.shape[:-1], layer.out_features)
    if layer.bias is not None:
        parts[0] += layer.bias
    return x.of(parts)


def log(x: Number) -> Number:
    """Return ln x."""
    if not isinstance(x, Jet):
        return torch.log(x)
    y = 1.0 / x.value
    return x.through(torch.log(x.value), y, -y * y)


def log1p(x: Number) -> Number:
    """Return ln(1 + x)."""
    if not isinstance(x, Jet):
        return torch.log1p(x)
    y = 1.0 / (1.0 + x.value)
    return x.through(torch.log1p(x.value), y, -y * y)


def exp(x: Number) -> Number:
    """Return e^x."""
    if not isinstance(x, Jet):
        return torch.exp(x)
    y = torch.exp(x.value)
    return x.through(y, y, y)


def expm1(x: Number) -> Number:
    """Return e^x - 1."""
    if not isinstance(x, Jet):
        return torch.expm1(x)
    y = torch.exp(x.value)
    return x.through(torch.expm1(x.value), y, y)


def sqrt(x: Number) -> Number:
    """Return √x."""
    if not isinstance(x, Jet):
        return torch.sqrt(x)
    y = torch.sqrt(x.value)
    slope = 0.5 / y
    return x.through(y, slope, -0.5 * slope / x.value)


@overload
def hypot(x: Tensor, y: Tensor) -> Tensor: ...
@overload
def hypot(x: Jet, y: Tensor | Jet) -> Jet: ...
@overload
def hypot(x: Tensor, y: Jet) -> Jet: ...
def hypot(x: Tensor | Jet, y: Tensor | Jet) -> Tensor | Jet:
    """Return √(x² + y²); a tensor beside a jet is constant."""
    if isinstance(y, Jet):
        return sqrt(y * y + x * x)
    if isinstance(x, Jet):
        return sqrt(x * x + y * y)
    return torch.hypot(x, y)


def tanh(x: Number) -> Number:
    """Return tanh x."""
    if not isinstance(x, Jet):
        return torch.tanh(x)
    y = torch.tanh(x.value)
    slope = 1.0 - y * y
    return x.through(y, slope, -2.0 * y * slope)


def sigmoid(x: Number) -> Number:
    """Return 1 / (1 + e^-x)."""
    if not isinstance(x, Jet):
        return torch.sigmoid(x)
    y = torch.sigmoid(x.value)
    slope = y * torch.sigmoid(-x.value)  # for large x without cancellation
    return x.through(y, slope, slope * (1.0 - 2.0 * y))


def softplus(x: Number) -> Number:
    """Return ln(1 + e^x)."""
    if not isinstance(x, Jet):
        return functional.softplus(x)
    y = torch.sigmoid(x.value)
    return x.through(functional.softplus(x.value), y, y * torch.sigmoid(-x.value))


def gelu_(x: Jet) -> Jet:
    """Return x Φ(x), Φ the normal distribution, in the memory of x."""
    u = x.value
    if len(x.parts) == 1:  # a number: torch does all in one pass
        torch.ops.aten.gelu_(u)
        return x
    below = torch.erf(u * math.sqrt(0.5)).add_(1.0).mul_(0.5)
    square = u * u
    # e^x as a power of two: torch's exp takes three times as long, and more where e^x underflows
    density = (square * (-0.5 * math.log2(math.e))).exp2_().mul_(1.0 / math.sqrt(2.0 * math.pi))
    bends = [
        (number, x.first(i) * x.first(j)) for number, (i, j) in enumerate(x.pairs)
    ]  # before the first derivatives are overwritten
    x.parts[1:].mul_(torch.addcmul(below, u, density))
    bend = density.mul_(square.neg_().add_(2.0))
    for number, product in bends:
        x.second(number).addcmul_(product, bend)
    u.mul_(below)
    return x


@overload
def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor: ...
@overload
def where(condition: Tensor, a: Jet, b: Tensor | Jet) -> Jet: ...
@overload
def where(condition: Tensor, a: Tensor, b: Jet) -> Jet: ...
def where(condition: Tensor, a: Tensor | Jet, b: Tensor | Jet) -> Tensor | Jet:
    """Return a where the condition holds, and b elsewhere; a tensor beside a jet is constant."""
    if isinstance(a, Jet):
        other = b if isinstance(b, Jet) else Jet.constant(b, a.n_directions, a.pairs)
        return a.of(torch.where(condition, a.parts, other.parts))
    if isinstance(b, Jet):
        return where(~condition, b, a)
    return torch.where(condition, a, b)


def stack(columns: Sequence[Tensor | Jet], dim: int) -> Tensor | Jet:
    """Return jets, or tensors, side by side on a new axis, counted from the last one.

    Tensors beside jets are constant.
    """
    jet = next((column for column in columns if isinstance(column, Jet)), None)
    if jet is None:
        return torch.stack(cast("list[Tensor]", list(columns)), dim)
    shape = list(jet.parts.shape)
    shape.insert(len(shape) + 1 + dim, len(columns))
    parts = jet.parts.new_empty(shape)  # columns written into it are faster than torch.stack
    for place, column in zip(parts.unbind(dim), columns, strict=True):
        if isinstance(column, Jet):
            place.copy_(column.parts)
        else:
            place[0] = column
            place[1:] = 0.0
    return jet.of(parts)
