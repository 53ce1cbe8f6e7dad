"""The progress of long work: a bar on a terminal, or the caller's own function."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

Progress = bool | Callable[[int, int], None] | None
Advance = Callable[[int], None] | None  # called with the number of rows just done


@contextmanager
def progress_bar(progress: Progress, total: int, text: str) -> Iterator[Advance]:
    """Yield what engines call with the number of rows just done: a bar, a user's hook or None."""
    if callable(progress):
        hook, done = progress, 0

        def advance(n: int) -> None:
            nonlocal done
            done += n
            hook(done, total)

        yield advance
    elif progress or (progress is None and sys.stderr.isatty()):
        with tqdm(total=total, desc=text, unit="rows", unit_scale=True, delay=1.0) as bar:

            def step(n: int) -> None:
                bar.update(n)

            yield step
    else:
        yield None


@contextmanager
def parts_bar(
    progress: Progress, done: int, total: int, text: str
) -> Iterator[Callable[[int], None]]:
    """Yield what is called with the rows of each part just done: a bar of parts, or a user's hook.

    The bar also says how many rows a second that is; parts that were ``done`` before do not count.
    """
    start, rows = time.perf_counter(), 0
    is_shown = progress is True or (progress is None and sys.stderr.isatty())
    if callable(progress):
        progress(done, total)
    with tqdm(total=total, initial=done, desc=text, unit="part", disable=not is_shown) as bar:

        def advance(n: int) -> None:
            nonlocal done, rows
            done, rows = done + 1, rows + n
            if callable(progress):
                progress(done, total)
            rate = rows / max(time.perf_counter() - start, 1e-9)
            bar.set_postfix_str(f"{rate:,.0f} rows/s", refresh=False)
            bar.update()

        yield advance
