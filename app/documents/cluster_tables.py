"""Tables of books in parts on a cluster, written from measured results."""

from app.documents.fill import Tables, from_results
from pricing.bench_clusters import ClusterResults

CONTRACTS = 1_500_000  # listed in the US
_CORES = (1, 2, 8, 32, 128)


def clusters_table(results: ClusterResults) -> str:
    """Return the cluster beside one process."""
    workers, alone, spread = (
        results["workers"],
        results["serial_seconds"],
        results["cluster_seconds"],
    )
    same = "the same bytes" if results["has_same_bytes"] else "other bytes"
    lines = [
        "| five Greeks by `amo` | seconds | core seconds | µs a row and core |",
        "|---|---:|---:|---:|",
        *(
            f"| {name} | {seconds:.0f} | {seconds * cores:.0f} "
            f"| {1e6 * seconds * cores / results['rows']:.0f} |"
            for name, seconds, cores in (
                ("one process", alone, 1),
                (f"Dask, {workers} workers on loopback", spread, workers),
            )
        ),
    ]
    notes = [
        (
            f"{results['rows']:,} American options over {results['parts']} parts: {same}, by "
            "SHA-256. They share 200 market states."
        ),
        (
            f"The cluster takes {results['overhead']:+.0%} core time, by the wall clock, and "
            f"{results['processor_overhead']:+.0%} processor time."
        ),
        (
            f"A worker holds {max(results['worker_megabytes']):,.0f} MB at most. Until both are "
            f"started and have loaded the engine, {results['start_seconds']:.0f} s pass."
        ),
        f"Measured by `{results['command']}` on {results['machine']['cores']} cores.",
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)]) + "\n"


def universe_table(results: ClusterResults) -> str:
    """Return what all listed options take, by the rate that was measured on some."""
    listed, overhead = results["listed"], max(results["overhead"], 0.0)
    seconds = 1e-6 * CONTRACTS * listed["microseconds"] * (1.0 + overhead)
    note = (
        f"An estimate: {listed['microseconds']:.0f} µs a row on one core, measured on "
        f"{listed['rows']:,} options on {listed['underlyings']:,} underlyings, twenty expiries "
        f"each, and the cluster's overhead of {overhead:.0%}; starting the workers comes on top."
    )
    return "\n".join(
        [
            "| cores | " + " | ".join(f"{cores}" for cores in _CORES) + " |",
            "|---|" + "---:|" * len(_CORES),
            "| seconds | " + " | ".join(f"{seconds / cores:.0f}" for cores in _CORES) + " |",
            "",
            note,
            "",
        ]
    )


CLUSTER_TABLES: Tables = {
    "clusters": from_results("clusters", ClusterResults, clusters_table),
    "universe": from_results("clusters", ClusterResults, universe_table),
}
