#!/usr/bin/env bash
# pytest leaves out tests in any folder that is called "build", and says nothing.
#
# Version: pytest 9.2.0.
# Expected: every test_*.py below the folders of testpaths is collected; "build" at the root of a project
#   is for what tools make.
# Seen: the default of norecursedirs names "build" and "dist" at every depth. Tests that mirror a package
#   called build are never run, CI stays green, and only the path of a file itself runs them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pytest==9.2.0

cd "$folder"
mkdir -p tests/unit/build tests/unit/plan
echo "def test_of_the_package_build(): assert False" > tests/unit/build/test_build.py
echo "def test_of_the_package_plan(): pass" > tests/unit/plan/test_plan.py
whole=$("$folder/venv/bin/pytest" -q tests/unit 2>&1)
echo "tests/unit: $(tail -n 1 <<< "$whole")"
[[ "$whole" == *"1 passed"* && "$whole" != *failed* ]]
alone=$("$folder/venv/bin/pytest" -q tests/unit/build/test_build.py 2>&1 || true)
echo "the file alone: $(tail -n 1 <<< "$alone")"
[[ "$alone" == *"1 failed"* ]]
