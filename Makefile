# The two commands: `make run` and `make test`. Everything else is a part of them.

VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
TESTS ?= tests/unit tests/ui tests/accuracy

# Models of each installed library that `make coverage` looks at; 0: all, which takes hours.
SAMPLE ?= 60
REAL ?= 0

# Tests start hundreds of processes: each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run check test lint unit bench accuracy recipes coverage profiles packages desktop clean

run: $(VENV)/run.stamp
	@$(BIN)/python scripts/run.py

test: lint unit

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/system_packages.py --for tests
	$(PYTEST) -q tests/unit/test_prose.py

# While working: lint, and the tests of what changed since main.
check: lint
	@$(BIN)/python scripts/check.py

# Without the slow ones: those trace large models or really train, and `make accuracy` runs them.
unit: $(VENV)/test.stamp
	@$(BIN)/python scripts/system_packages.py --for tests
	$(PYTEST) -q -n auto --maxprocesses 4 -m "not slow" $(TESTS)

# Medians and ratios, printed and never asserted: a busy machine must not fail them. With
# BASE=<commit>, CPU seconds of this tree over those of that commit, both run in turn.
BASE ?=
bench: $(VENV)/test.stamp
	@$(BIN)/python scripts/system_packages.py --for tests
ifeq ($(BASE),)
	$(PYTEST) -q -s tests/bench
else
	$(BIN)/python scripts/compare_speed.py $(BASE)
endif

accuracy: $(VENV)/test.stamp
	$(PYTEST) -q -s tests/accuracy

# Loops of older libraries on the CPU beside their recipes; installs the libraries (3 GB).
recipes: $(VENV)/test.stamp
	scripts/old_libraries.sh $(BIN)/python build/old-libraries
	OLD_LIBRARIES=build/old-libraries $(PYTEST) -q -s tests/unit/worker/test_recipes.py

# Which models of transformers, diffusers and timm are answered, and why the others are not.
coverage: $(VENV)/test.stamp
	$(BIN)/python scripts/coverage.py --sample $(SAMPLE) --real $(REAL)

# Traces the presets again, one child process at a time.
profiles: $(VENV)/test.stamp
	$(BIN)/pip install -q -e ".[vision]"
	$(BIN)/python scripts/build_profiles.py

# The wheel, installed by pipx and uv, and PyInstaller's folder: built and started without torch.
packages:
	scripts/packages.sh build/packages

# Adds the app to the menus of this account, and opens *.plan.yaml with it.
DATA := $(or $(XDG_DATA_HOME),$(HOME)/.local/share)
desktop: $(VENV)/run.stamp
	install -d $(DATA)/applications
	sed 's|^Exec=|Exec=$(abspath $(BIN))/|' packaging/trainwright.desktop > $(DATA)/applications/trainwright.desktop
	install -Dm644 packaging/trainwright-mime.xml $(DATA)/mime/packages/trainwright.xml
	install -Dm644 packaging/trainwright.metainfo.xml $(DATA)/metainfo/trainwright.metainfo.xml
	install -Dm644 resources/icons/trainwright.svg $(DATA)/icons/hicolor/scalable/apps/trainwright.svg
	-update-mime-database $(DATA)/mime
	-update-desktop-database $(DATA)/applications

# What an installation is made of: an edited allocator is compiled again.
INSTALLED := pyproject.toml scripts/environment.sh app/trainwright/estimate/memory/allocator.c

$(VENV)/run.stamp: $(INSTALLED)
	@scripts/environment.sh $(VENV) ".[torch]"
	@touch $@

$(VENV)/test.stamp: $(INSTALLED)
	@scripts/environment.sh $(VENV) ".[test]"
	@touch $@ $(VENV)/run.stamp

clean:
	rm -rf $(VENV) build dist
