"""python -m data_gen: make, list, verify and preview training sets."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from amo.cluster import connected
from amo.command_line import add_json, count, publish, run
from amo.data.format import Manifest, load_shard, read_manifest
from amo.errors import DataError, FileError
from amo.files import sha256_of, write_text
from amo.jobs import Where
from data_gen import bench
from data_gen.builder import Report, build
from data_gen.dataset import Check, DataSet
from data_gen.flags import RANGES, ranges_of, settings_of, summary_of, words_of
from data_gen.physics import mooney_rivlin
from data_gen.registry import DEFAULTS, SETS
from pricing.surrogate.domain import Domain

EXAMPLES = """examples:
  python -m data_gen                        every set the shipped models need, under data/
  python -m data_gen american --states 4000 --vols 16 --seed 0 --workers 2 --out data/american
  python -m data_gen american --dask tcp://10.0.0.5:8786 --out /shared/american
  python -m data_gen list
  python -m data_gen verify data/american
  python -m data_gen preview data/american"""

_DASK = "of a Dask scheduler, tcp://HOST:PORT, whose workers make the shards; they see the folder"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit codes are those of :mod:`amo.command_line`."""
    args = _parser().parse_args(_with_verb(sys.argv[1:] if arguments is None else arguments))
    return run(
        lambda: int(args.run(args)),
        interrupted="interrupted: finished shards are kept; the same command, without --overwrite, "
        "goes on where it stopped",
    )


def _with_verb(arguments: Sequence[str]) -> list[str]:
    """Put `make` before the name of a set: `python -m data_gen american` is `… make american`."""
    for place, word in enumerate(arguments):
        if word in SETS and "make" not in arguments[:place] and not _is_value(arguments, place):
            return [*arguments[:place], "make", *arguments[place:]]
        if not word.startswith("-") and not _is_value(arguments, place):
            break  # another verb
    return list(arguments)


def _is_value(arguments: Sequence[str], place: int) -> bool:
    return place > 0 and arguments[place - 1] in {"--workers", "--dask"}


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m data_gen",
        description="Training sets: options from the finite-difference solver, and physics.",
        epilog=EXAMPLES,
        formatter_class=raw,
    )
    workers = min(2, os.cpu_count() or 1)  # each holds a third of a gigabyte
    parser.add_argument(
        "--workers",
        type=count,
        default=workers,
        metavar="N",
        help=f"processes, 330 MB each, default {workers}",
    )
    parser.add_argument("--dask", metavar="ADDRESS", help=_DASK)
    parser.set_defaults(run=_make_all)
    commands = parser.add_subparsers(metavar="command")
    making = commands.add_parser("make", help="make a set, or finish one that was stopped")
    sets = making.add_subparsers(metavar="set", required=True)
    for set_name in SETS:
        _add_set(sets, set_name, workers)
    listing = commands.add_parser("list", help="the sets, with sizes and times")
    listing.set_defaults(run=_list)
    verify = commands.add_parser("verify", help="hash every shard, solve some points again")
    verify.add_argument("folder", type=Path, help="a data set")
    verify.add_argument(
        "--points", type=count, default=40, metavar="N", help="solved again, default 40"
    )
    verify.add_argument("--json", type=Path, metavar="FILE", help="results to put this set into")
    verify.set_defaults(run=_verify)
    preview = commands.add_parser("preview", help="write a picture of a few samples")
    preview.add_argument("folder", type=Path, help="a data set")
    preview.add_argument("-o", "--output", type=Path, help="default: preview.html in the folder")
    preview.set_defaults(run=_preview)
    rival = commands.add_parser("mooney-rivlin", help="fit the classical model to a glove set")
    rival.add_argument("folder", type=Path, help="a data set made by `glove`")
    rival.set_defaults(run=_mooney_rivlin)
    measure = commands.add_parser("bench", help="labels per second against QuantLib's grid")
    add_json(measure)
    measure.add_argument("--full", action="store_true", help="also time the default build")
    measure.set_defaults(run=_bench)
    return parser


def _add_set(
    sets: "argparse._SubParsersAction[argparse.ArgumentParser]", set_name: str, workers: int
) -> None:
    """Add a set; its settings and the ranges of its domain are flags."""
    make = SETS[set_name]
    command = sets.add_parser(
        set_name, help=summary_of(make), description=summary_of(make), epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    for setting in settings_of(make):
        default = "" if setting.default is MISSING else f", default {setting.default:,}"
        words = words_of(make).get(setting.name, setting.name.replace("_", " "))
        command.add_argument(
            f"--{setting.name}", type=int, metavar="N", help=f"{words}{default}".replace("%", "%%")
        )
    for name in ranges_of(make):
        low, high = getattr(Domain(), name)
        words = f"range of {RANGES[name]}, default {low:g} {high:g}"
        flag = f"--{name.replace('_', '-')}"
        command.add_argument(flag, type=float, nargs=2, metavar=("LOW", "HIGH"), help=words)
    folder = Path("data") / set_name
    command.add_argument(
        "--out", type=Path, default=folder, metavar="DIR", help=f"default {folder}"
    )
    command.add_argument(
        "--workers", type=count, default=argparse.SUPPRESS, metavar="N",
        help=f"processes, default {workers}",
    )  # fmt: skip
    command.add_argument("--dask", default=argparse.SUPPRESS, metavar="ADDRESS", help=_DASK)
    command.add_argument("--overwrite", action="store_true", help="replace what is in --out")
    command.set_defaults(run=_make_one, name=set_name)


def _make_one(args: argparse.Namespace) -> int:
    make = SETS[args.name]
    given = {f.name: getattr(args, f.name) for f in settings_of(make)}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    ranges = {name: getattr(args, name) for name in ranges_of(make)}
    if any(ranges.values()):
        chosen["domain"] = Domain.from_dict({n: r for n, r in ranges.items() if r is not None})
    dataset = make(**chosen)
    with connected(args.dask) as executor:
        report = _build(
            dataset, args.name, args.out, args.workers, executor, overwrite=args.overwrite
        )
    print(_table([report]))
    return 0


def _make_all(args: argparse.Namespace) -> int:
    with connected(args.dask) as executor:
        print(_table(_make_defaults(Path("data"), args.workers, executor)))
    return 0


def _make_defaults(folder: Path, workers: int, executor: Where = None) -> list[Report]:
    return [_build(SETS[name](), name, folder / name, workers, executor) for name in DEFAULTS]


def _build(
    dataset: DataSet,
    name: str,
    out: Path,
    workers: int,
    executor: Where,
    *,
    overwrite: bool = False,
) -> Report:
    with tqdm(total=dataset.n_shards, desc=name, unit="shard") as bar:

        def progress(done: int, _: int) -> None:
            bar.update(done - bar.n)

        return build(
            dataset,
            name,
            out,
            workers=workers,
            executor=executor,
            overwrite=overwrite,
            progress=progress,
        )


def _table(reports: Sequence[Report]) -> str:
    head = f"{'set':<20}{'samples':>9}{'dropped':>9}{'worst label error':>19}{'MB':>7}"
    lines = [
        f"{r.name:<20}{r.samples:>9,}{r.dropped:>9,}{r.worst_error:>19.1e}{r.size / 1e6:>7.0f}"
        f"{r.seconds:>9.0f}  {r.path}"
        for r in reports
    ]
    return "\n".join([f"{head}{'seconds':>9}  path", *lines])


def _list(_: argparse.Namespace) -> int:
    measured = bench.default_build()
    print(f"{'set':<20}{'shards':>7}{'samples':>9}{'MB':>7}{'seconds':>9}  in data/")
    for name, make in SETS.items():
        known: Mapping[str, object] = measured.get(name, {})
        folder = Path("data") / name
        try:
            state = "complete" if read_manifest(folder).is_complete else "unfinished"
        except DataError:
            state = "not made"
        dataset = make()
        samples = known.get("samples", getattr(dataset, "n_samples", "?"))
        size, seconds = (known.get(k, "?") for k in ("megabytes", "seconds"))
        print(f"{name:<20}{dataset.n_shards:>7}{samples:>9}{size:>7}{seconds:>9}  {state}")
    return 0


def _verify(args: argparse.Namespace) -> int:
    manifest = read_manifest(args.folder)
    if manifest.name not in SETS:
        raise DataError(f"{args.folder} holds the unknown set {manifest.name!r}")
    bad = [
        shard.file
        for shard in tqdm(manifest.shards, desc="hashing", unit="shard", delay=1.0)
        if not (args.folder / shard.file).is_file()
        or sha256_of(args.folder / shard.file) != shard.sha256
    ]
    for file in bad:
        print(f"{args.folder / file}: missing or not what the manifest describes")
    if bad or not manifest.is_complete:
        print(f"{len(bad)} bad shards; complete: {manifest.is_complete}: run the set again")
        return 1
    dataset = _rebuild(manifest.name, manifest.settings)
    rng = np.random.default_rng()
    chosen = rng.permutation(len(manifest.shards))[:4]
    shards = [load_shard(args.folder, manifest.shards[i]) for i in chosen]
    arrays = {name: np.concatenate([shard[name] for shard in shards]) for name in shards[0]}
    checks = dataset.check(arrays, args.points, rng)
    print(f"{len(manifest.shards)} shards hash as the manifest says; some points solved again:")
    for check in checks:
        verdict = "ok" if check.is_met else "WRONG"
        print(
            f"{check.quantity:<14} off by at most {check.largest:.1e}{check.unit} on "
            f"{check.n_points} points, {check.allowed:.0e} allowed: {verdict}"
        )
    if args.json is not None:
        _record(args.json, manifest, checks)
    return 0 if all(check.is_met for check in checks) else 1


def _record(path: Path, manifest: Manifest, checks: Sequence[Check]) -> None:
    """Add the findings about a set to a results file, beside other sets."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"sets": {}}
    results["command"] = "python -m data_gen verify data/NAME --points N --json FILE"
    results["sets"][manifest.name] = {
        "settings": manifest.settings,
        "samples": sum(shard.samples for shard in manifest.shards),
        "worst_error": max(shard.worst_error for shard in manifest.shards),
        "checks": [asdict(check) for check in checks],
    }
    write_text(json.dumps(results, indent=1) + "\n", path)


def _rebuild(name: str, settings: dict[str, Any]) -> DataSet:
    make = SETS[name]
    chosen: dict[str, Any] = {f.name: settings[f.name] for f in settings_of(make)}
    if ranges_of(make):
        chosen["domain"] = Domain.from_dict(settings["domain"])
    return make(**chosen)


def _preview(args: argparse.Namespace) -> int:
    manifest = read_manifest(args.folder)
    if not manifest.shards:
        raise DataError(f"{args.folder} has no finished shard yet")
    dataset = _rebuild(manifest.name, manifest.settings)
    figure = dataset.picture(load_shard(args.folder, manifest.shards[0], verify=True))
    output = args.output or args.folder / "preview.html"
    if output.suffix != ".html":
        raise FileError(f"cannot write {output}: a preview is a page, name it .html")
    write_text(figure.to_html(include_plotlyjs=True), output)  # opens without a network
    print(f"wrote {output}", file=sys.stderr)
    return 0


def _mooney_rivlin(args: argparse.Namespace) -> int:
    if (name := read_manifest(args.folder).name) != "glove":
        raise DataError(f"{args.folder} holds the set {name!r}: this model is fitted to a glove")
    rubber, error, n_steps = mooney_rivlin.assess(args.folder)
    print(
        f"mooney-rivlin, c01 / c10 = {rubber.c01:.3g}, c20 / c10 = {rubber.c20:.3g}: "
        f"relative L2 {error:.2e}, the mean over {n_steps} steps of the test films"
    )
    return 0


def _bench(args: argparse.Namespace) -> int:
    results = bench.run()
    if args.full:
        with tempfile.TemporaryDirectory() as folder:
            reports = _make_defaults(Path(folder), args.workers)
        results["sets"] = {
            r.name: {
                "samples": r.samples,
                "dropped": r.dropped,
                "worst_error": r.worst_error,
                "megabytes": round(r.size / 1e6),
                "seconds": round(r.seconds),
            }
            for r in reports
        }
    publish(results, bench.as_text, args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
