"""Writing files: whole or not at all."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amo.errors import FileError


def write_text(text: str, path: Path) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def make_folder(path: Path) -> None:
    """Make a folder, which may exist already."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {path}: {error.strerror}") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a fresh name beside ``path`` and rename it there if the block succeeds."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from error
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error}") from error
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
