#!/usr/bin/env bash
# Make a virtual environment and install Trainwright into it: environment.sh FOLDER REQUIREMENT.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
requirement=$2

fail() {
    echo "$1" >&2
    exit 1
}

suits() {
    command -v "$1" >/dev/null && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# PYTHON names an interpreter; otherwise the default one, or the newest that is there.
find_python() {
    for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
        if suits "$name"; then
            echo "$name"
            return
        fi
    done
    fail "Trainwright needs Python 3.11 or newer, and $(python3 --version 2>&1 || echo 'no Python') is here: install python3.11, or run: make PYTHON=/path/to/python3.11"
}

# Debian and Ubuntu ship `venv` apart from Python.
need_venv() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return
    local package
    package=$("$1" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"
    else
        fail "Python's venv module is missing; run: sudo apt-get install -y $package"
    fi
}

if [ ! -x "$folder/bin/python" ]; then
    python=$(find_python)
    need_venv "$python"
    echo "Making $folder with $("$python" --version)"
    "$python" -m venv "$folder"
fi
echo "Installing $requirement (the first time downloads torch; it may take minutes)"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -e "$requirement"
