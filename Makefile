# Two commands do all set-up: `make app` and `make test`. Everything else is for contributors.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: app test pytest lint format bench measure benchmarks paper screenshots data models wheel docs clean help

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer with venv is needed: install it, or say PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(STAMP)

app: $(STAMP)  ## install if needed, then serve the dashboard on http://localhost:8501
	$(BIN)/amo-pricing app

test: $(STAMP)  ## lint, types, import contracts and every test, two at a time
	@$(MAKE) --no-print-directory --jobs 2 lint pytest

pytest: $(STAMP)
	$(BIN)/python -m pytest --numprocesses $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --dist loadfile --no-loadscope-reorder

lint: $(STAMP)  ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(STAMP)  ## build the wheel, install it elsewhere, price and serve from there
	rm -rf dist
	$(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	$(BIN)/python tests/installed.py dist/*.whl

measure: $(STAMP)  ## engines, dashboard, data_gen and cost of the operator, into docs
	$(BIN)/python -m pricing bench engines --json docs/results/engines.json
	$(BIN)/python -m pricing bench markets --json docs/results/markets.json
	$(BIN)/python -m pricing bench market-model --json docs/results/market_model.json
	$(BIN)/python -m pricing bench surfaces --surfaces 25 --json docs/results/surfaces.json
	$(BIN)/python -m pricing bench clusters --json docs/results/clusters.json
	$(BIN)/python -m pricing fuzz --rows 200000 --json docs/results/fuzz.json
	$(BIN)/python -m pricing fuzz --rows 20000 --engine fd --json docs/results/fuzz_fd.json
	$(BIN)/python -m pricing fuzz --markets --rows 100000 --json docs/results/fuzz_markets.json
	$(BIN)/python -m app bench --json docs/results/dashboard.json
	$(BIN)/python -m data_gen bench --full --json docs/results/data_gen.json
	$(BIN)/python -m amo bench scaling --json docs/results/scaling.json
	$(BIN)/python -m app report

bench: $(STAMP)  ## every table of models in small, into runs/smoke: do they run at all?
	rm -rf runs/smoke
	$(BIN)/python -m data_gen paper-options --train 16 --validation 8 --test 8 \
	    --out runs/smoke/paper-options
	$(BIN)/python -m amo bench options --models $(ALL) --steps 2 --data runs/smoke/paper-options \
	    --out runs/smoke/options --json runs/smoke/options.json
	$(BIN)/python -m amo bench ablations --steps 2 --data runs/smoke/paper-options \
	    --out runs/smoke/ablations --json runs/smoke/ablations.json
	set -e; for name in $(SETS); do \
	    $(BIN)/python -m data_gen $$name --train 4 --validation 2 --test 2 \
	        --out runs/smoke/$$name; \
	done
	$(BIN)/python -m data_gen navier-stokes --train 4 --validation 2 --test 2 --fine 64 --steps 32 \
	    --out runs/smoke/navier-stokes
	$(BIN)/python -m amo bench physics --problems $(PROBLEMS) --models amo,amo-grid --steps 2 \
	    --data runs/smoke --out runs/smoke/physics --json runs/smoke/physics.json
	$(BIN)/python -m amo bench filters --steps 2 --data runs/smoke --out runs/smoke/filters \
	    --json runs/smoke/filters.json
	$(BIN)/python -m data_gen american --states 24 --vols 2 --out runs/smoke/american
	$(BIN)/python -m data_gen american-market --markets 16 --out runs/smoke/american-market
	set -e; for name in american american-market; do \
	    $(BIN)/python -m pricing bench rivals --problem $$name --minutes 0.001 --seeds 1 \
	        --data runs/smoke/$$name --out runs/smoke/rivals --json runs/smoke/rivals-$$name.json; \
	done

FIVE := amo,fno,lno,transolver,lamo
REST := f-fno,u-fno,transolver++,galerkin,ono,oformer,mwt,lsm,ifno
ALL := $(FIVE),$(REST)
SETS := darcy elasticity advection advection-speeds helmholtz brusselator fractal-darcy reaction-diffusion pipe airfoil glove plasticity
PHYSICS := $(SETS) navier-stokes
GRIDS := darcy,advection,reaction-diffusion,navier-stokes
PROBLEMS := darcy,elasticity,advection,advection-speeds,helmholtz,brusselator,fractal-darcy,fractal-darcy-hidden,reaction-diffusion,navier-stokes,pipe,airfoil,glove,plasticity
EVERY := amo,amo-grid,amo-cloud,fno,lno,transolver,lamo,$(REST)
comma := ,
OPTIONS := $(BIN)/python -m amo bench options --minutes 2
RECORD := docs/results
benchmarks: $(STAMP)  ## all tables of models, into docs; hours, resumable, rows that are there stay
	$(BIN)/python -m data_gen paper-options
	$(OPTIONS) --json $(RECORD)/options.json --models $(FIVE) --codings raw --seeds 3
	$(OPTIONS) --json $(RECORD)/options.json --models $(ALL) --codings raw,scaled \
	    --pictures docs/pictures
	$(BIN)/python -m data_gen paper-options --train 400 --validation 40 --test 100 \
	    --out data/paper-options-small
	$(BIN)/python -m amo bench ablations --coding scaled --steps 200 --seeds 2 \
	    --data data/paper-options-small --json $(RECORD)/ablations.json
	set -e; for name in $(PHYSICS); do \
	    $(BIN)/python -m data_gen $$name; \
	    $(BIN)/python -m data_gen verify data/$$name --points 3 \
	        --json $(RECORD)/physics_data.json; \
	done
	$(BIN)/python -m amo bench physics --problems $(PROBLEMS) --minutes 2 \
	    --json $(RECORD)/physics.json --pictures docs/pictures
	$(BIN)/python -m amo bench physics --problems $(GRIDS) --models amo-grid,fno --seeds 3 \
	    --learning-rate 0.001,0.003 --minutes 2 --out runs/bench/grids \
	    --json $(RECORD)/grids.json
	$(BIN)/python -m amo bench filters --minutes 2 --seeds 3 --json $(RECORD)/filters.json
	$(BIN)/python -m data_gen american
	$(BIN)/python -m pricing bench rivals --minutes 3 --json $(RECORD)/rivals.json
	$(BIN)/python -m data_gen american-market
	$(BIN)/python -m pricing bench rivals --problem american-market --minutes 1.5 --compile \
	    --json $(RECORD)/market_rivals.json
	$(BIN)/python -m app report

DEVICE ?= auto
EPOCHS ?= 500
PAPER := --size paper --epochs $(EPOCHS) --batch-size 16 --points all --learning-rate 0.0002 \
    --device $(DEVICE)
OFFICIAL ?=
paper: $(STAMP)  ## the paper's tables as printed: its sizes, 500 epochs, for a GPU; DEVICE=cuda
	$(BIN)/python -m data_gen paper-options
	set -e; for name in $(PHYSICS); do $(BIN)/python -m data_gen $$name; done
	$(BIN)/python -m amo bench options $(PAPER) --models $(EVERY) --codings raw \
	    --out runs/paper/options --json $(RECORD)/paper_options.json
	$(BIN)/python -m amo bench physics $(PAPER) --models $(EVERY) \
	    --problems $(PROBLEMS)$(if $(OFFICIAL),$(comma)$(OFFICIAL)) \
	    --out runs/paper/physics --json $(RECORD)/paper_physics.json

docs: $(STAMP)  ## the API reference and the guides, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

screenshots: $(STAMP)  ## every page of the dashboard in light and dark, into docs/screenshots
	$(BIN)/python -m app screenshots

data: $(STAMP)  ## the training sets that the shipped models need, under data/
	$(BIN)/python -m data_gen

SURROGATES := american-market american-mlp american european
models: $(STAMP)  ## make the data, train the shipped surrogates two at a time, publish them
	$(BIN)/python -m data_gen make european
	$(BIN)/python -m data_gen make american
	$(BIN)/python -m data_gen make american-market
	printf '%s\n' $(SURROGATES) | OMP_NUM_THREADS=1 xargs -n 1 -P 2 $(BIN)/python -m pricing train --compile
	set -e; for name in $(SURROGATES); do $(BIN)/python -m pricing publish runs/$$name; done
	$(BIN)/python -m pricing bench surfaces --surfaces 25 --json docs/results/surfaces.json
	$(BIN)/python -m pricing fuzz --rows 200000 --json docs/results/fuzz.json
	$(BIN)/python -m pricing fuzz --markets --rows 100000 --json docs/results/fuzz_markets.json
	$(BIN)/python -m app report

clean:  ## remove the environment and every cache
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
