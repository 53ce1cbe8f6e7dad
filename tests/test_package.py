"""What is in the wheel, what the front doors offer, and what the library does without."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import amo
import pricing
from pricing.surrogate import store

ROOT = Path(__file__).parents[1]
OPTIONAL = ("streamlit", "plotly", "playwright", "skfem", "h5py", "matplotlib")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), "."],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


def test_the_wheel_holds_models_results_settings_and_markers(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for model in ("european", "american"):
        for file in ("weights.safetensors", "config.json", "metrics.json"):
            assert f"pricing/shipped_models/{model}/{file}" in names
    assert {f"{package}/py.typed" for package in ("amo", "pricing", "data_gen", "app")} <= names
    assert {"amo/shipped_results/engines.json", "app/config.toml", "app/main.py"} <= names


def test_an_unpacked_wheel_prices_with_its_own_models(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import pandas as pd, pricing\n"
        "from pricing.engines.surrogate import models_folder\n"
        f"assert str(models_folder()).startswith({str(tmp_path)!r}), models_folder()\n"
        "row = {'S': 95., 'K': 100., 'T': .5, 'r': .04, 'q': .01, 'sigma': .25, 'type': 'put'}\n"
        "for style in ('european', 'american'):\n"
        "    priced = pricing.price_frame(pd.DataFrame([row]), 'amo', exercise=style)\n"
        "    assert abs(priced['price'].iloc[0] - 8.8) < 0.3\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


def test_the_library_needs_none_of_the_optional_packages() -> None:
    program = (
        f"import sys\nfor name in {OPTIONAL!r}: sys.modules[name] = None\n"
        "import pandas as pd\n"
        "from pricing import ENGINES, price_frame\n"
        "from amo import AMO, AMOConfig\n"
        "row = {'S': 95., 'K': 100., 'T': .5, 'r': .04, 'q': .01, 'sigma': .25, 'type': 'put'}\n"
        "for engine in ENGINES:\n"
        "    style = 'european' if engine == 'analytic' else 'american'\n"
        "    price_frame(pd.DataFrame([row]), engine, exercise=style)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("package", [amo, pricing])
def test_front_doors_offer_what_they_name(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_packages_loads_nothing_heavy() -> None:
    program = (
        "import sys, amo, amo.__main__, pricing, pricing.__main__\n"
        "heavy = {'torch', 'pandas', 'numba', 'scipy', 'numpy', 'QuantLib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_models_are_found_by_variable_then_package_then_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AMO_MODELS", raising=False)
    assert store.models_folder() == ROOT / "models"
    monkeypatch.setattr(store, "__file__", str(tmp_path / "pricing" / "surrogate" / "store.py"))
    (tmp_path / "pricing" / "shipped_models").mkdir(parents=True)
    assert store.models_folder() == tmp_path / "pricing" / "shipped_models"
    monkeypatch.setenv("AMO_MODELS", str(tmp_path / "mine"))
    assert store.models_folder() == tmp_path / "mine"
