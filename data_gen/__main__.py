"""python -m data_gen: make, list, verify and preview training sets."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from amo.data import Manifest, load_shard, read_manifest, sha256_of
from amo.errors import DataError, SettingsError
from amo.files import FileError, write_text
from amo.lazy import way_out
from data_gen import bench
from data_gen.black_scholes import AmericanSet, EuropeanSet
from data_gen.builder import BuildError, Report, build
from data_gen.dataset import Check, DataSet
from data_gen.paper_options import PaperOptionsSet
from data_gen.physics.advection import AdvectionSet
from data_gen.physics.brusselator import BrusselatorSet
from data_gen.physics.darcy import DarcySet
from data_gen.physics.elasticity import ElasticitySet
from data_gen.physics.fractal_darcy import FractalDarcySet
from data_gen.physics.navier_stokes import NavierStokesSet
from data_gen.physics.reaction_diffusion import ReactionDiffusionSet
from data_gen.toys import AntiderivativeSet, DiffusionSet
from pricing.domain import Domain

# The registry of sets: one line and one file each.
SETS: dict[str, Callable[..., DataSet]] = {
    "european": EuropeanSet,
    "american": AmericanSet,
    "paper-options": PaperOptionsSet,
    "antiderivative": AntiderivativeSet,
    "diffusion": DiffusionSet,
    "darcy": DarcySet,
    "elasticity": ElasticitySet,
    "navier-stokes": NavierStokesSet,
    "advection": AdvectionSet,
    "fractal-darcy": FractalDarcySet,
    "reaction-diffusion": ReactionDiffusionSet,
    "brusselator": BrusselatorSet,
}
DEFAULTS = ("european", "american", "paper-options")  # what the shipped models and tables need

EXAMPLES = """examples:
  python -m data_gen                        every set the shipped models need, under data/
  python -m data_gen american --states 4000 --vols 16 --seed 0 --workers 2 --out data/american
  python -m data_gen list
  python -m data_gen verify data/american
  python -m data_gen preview data/american"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 well, 1 refused or failed, 2 bad usage, 130 interrupted."""
    args = _parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except (BuildError, DataError, FileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(f"error: {way_out(error)}", file=sys.stderr)
        return 1
    except SettingsError as error:  # nonsense settings, found before any work
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\ninterrupted: finished shards are kept; the same command, without --overwrite, goes "
            "on where it stopped",
            file=sys.stderr,
        )
        return 130


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
        "--workers", type=int, default=workers, metavar="N", help="processes, 330 MB each"
    )
    parser.set_defaults(run=_make_all)
    commands = parser.add_subparsers(metavar="command")
    for set_name, make in SETS.items():
        command = commands.add_parser(
            set_name, help=f"make the set {set_name}", epilog=EXAMPLES, formatter_class=raw
        )
        for setting in _settings(make):
            default = setting.default
            text = "" if default is MISSING else f"default {default}"
            command.add_argument(f"--{setting.name}", type=int, metavar="N", help=text)
        command.add_argument("--out", type=Path, default=Path("data") / set_name, metavar="DIR")
        for name in _ranges(make):
            flag = f"--{name.replace('_', '-')}"
            command.add_argument(flag, type=float, nargs=2, metavar=("LOW", "HIGH"), help="domain")
        command.add_argument("--workers", type=int, default=argparse.SUPPRESS, metavar="N")
        command.add_argument("--overwrite", action="store_true", help="replace what is in --out")
        command.set_defaults(run=_make_one, name=set_name)
    listing = commands.add_parser("list", help="the sets, with sizes and times")
    listing.set_defaults(run=_list)
    verify = commands.add_parser("verify", help="hash every shard, solve some points again")
    verify.add_argument("folder", type=Path)
    verify.add_argument("--points", type=int, default=40, metavar="N")
    verify.add_argument("--json", type=Path, metavar="FILE", help="results to put this set into")
    verify.set_defaults(run=_verify)
    preview = commands.add_parser("preview", help="write a picture of a few samples")
    preview.add_argument("folder", type=Path)
    preview.add_argument("-o", "--output", type=Path, help="default: preview.html in the folder")
    preview.set_defaults(run=_preview)
    measure = commands.add_parser("bench", help="labels per second against QuantLib's grid")
    measure.add_argument("--json", type=Path, nargs="?", const=Path("-"), metavar="FILE")
    measure.add_argument("--full", action="store_true", help="also time the default build")
    measure.set_defaults(run=_bench)
    return parser


def _settings(make: Callable[..., DataSet]) -> list[Any]:
    """Return the dataclass fields that are plain numbers: those are flags."""
    return [f for f in fields(make) if f.type is int]  # type: ignore[arg-type]


def _ranges(make: Callable[..., DataSet]) -> list[str]:
    """Return the ranges of the domain, where a set has one: those are flags too."""
    has_domain = any(f.name == "domain" for f in fields(make))  # type: ignore[arg-type]
    return [f.name for f in fields(Domain)] if has_domain else []


def _make_one(args: argparse.Namespace) -> int:
    make = SETS[args.name]
    given = {f.name: getattr(args, f.name) for f in _settings(make)}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    ranges = {name: getattr(args, name) for name in _ranges(make)}
    if any(ranges.values()):
        chosen["domain"] = Domain.from_dict({n: r for n, r in ranges.items() if r is not None})
    dataset = make(**chosen)
    report = _build(dataset, args.name, args.out, args.workers, overwrite=args.overwrite)
    print(_table([report]))
    return 0


def _make_all(args: argparse.Namespace) -> int:
    print(_table(_make_defaults(Path("data"), args.workers)))
    return 0


def _make_defaults(folder: Path, workers: int) -> list[Report]:
    return [
        _build(SETS[name](), name, folder / name, workers, overwrite=False) for name in DEFAULTS
    ]


def _build(dataset: DataSet, name: str, out: Path, workers: int, *, overwrite: bool) -> Report:
    if workers < 1:
        raise SettingsError(f"--workers must be at least 1, got {workers}")
    with tqdm(total=dataset.n_shards, desc=name, unit="shard") as bar:

        def progress(done: int, _: int) -> None:
            bar.update(done - bar.n)

        return build(dataset, name, out, workers=workers, overwrite=overwrite, progress=progress)


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
        known = measured.get(name, {})
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
    """Put what was found of a set into a results file, beside other sets."""
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
    chosen: dict[str, Any] = {f.name: settings[f.name] for f in _settings(make)}
    if "domain" in settings:
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
    text = json.dumps(results, indent=2) + "\n"
    if args.json is None or args.json == Path("-"):
        print(text, end="")
    else:
        write_text(text, args.json)
        print(f"wrote {args.json}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
