"""The progress of long work: a bar on a terminal, or the caller's own function."""

import sys
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
