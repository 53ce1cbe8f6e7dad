"""S: what a block passes on, and what has been decomposed so far."""

from typing import Literal

from torch import Tensor

CoefficientSource = Literal["residual", "input", "accumulated"]


def aggregate(
    source: CoefficientSource, mixed: Tensor, captured: Tensor, accumulated: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the next block's tokens and the partial sum S_{i+1} = S_i + T_i.

    ``residual``
        The next block sees the remainder u - T: adaptive Fourier decomposition, in which the
        coefficients of later blocks are still those of the signal.
    ``input``
        The next block sees u itself.
    ``accumulated``
        The paper's recursion to the letter: the next block sees the partial sum. With an
        orthonormal nested system and no mixer it stalls, since <S_i, B_i> = 0.

    Paper: S_1 = 0 is what both its case i = 1 and the appendix's z_1 := 0 describe.
    """
    total = captured if accumulated is None else accumulated + captured
    if source == "residual":
        return mixed - captured, total
    return (mixed if source == "input" else total), total
