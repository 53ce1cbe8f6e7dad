"""Dask clusters: one that runs elsewhere, or a small one on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from amo.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 30.0  # seconds for a scheduler to answer


@contextmanager
def connected(address: str | None, timeout: float = _PATIENCE) -> Iterator["Client | None"]:
    """Connect to the scheduler at an address such as ``tcp://10.0.0.5:8786``, if there is one."""
    if address is None:
        yield None
        return
    from distributed import Client  # noqa: PLC0415  # of an extra

    try:
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r} ({error}): start one with `dask scheduler`, "
            "and workers with `dask worker`, or do without --dask"
        ) from error
    with client:
        yield client


@contextmanager
def local_cluster(workers: int) -> Iterator["Client"]:
    """Start single-threaded workers on this machine that nobody else can reach, until it ends.

    One thread each: the libraries that price hold Python's lock, or use several cores by
    themselves.
    """
    from distributed import Client, LocalCluster  # noqa: PLC0415  # of an extra

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
