"""Budgets of tables in words."""

from amo.results import Budget


def amount(budget: Budget) -> str:
    """Return how long every row was trained."""
    if budget.minutes is not None:
        return f"{budget.minutes:g} minutes of steps"
    return f"{budget.steps:,} steps" if budget.steps is not None else f"{budget.epochs:,} epochs"


def rates(budget: Budget) -> str:
    """Return the learning rates that every row was trained at."""
    if not budget.further_rates:
        return f"{budget.learning_rate:g}"
    known = " and ".join(f"{rate:g}" for rate in (budget.learning_rate, *budget.further_rates))
    return f"{known}, the best on validation for every row"
