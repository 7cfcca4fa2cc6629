#!/usr/bin/env bash
# Build what people install, and start it without any other Python package: the wheel by pip, pipx
# and uv, and the folder of PyInstaller. packages.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
goal=$(realpath -m "${1:-build/packages}")
plan=$PWD/resources/examples/llama-8b-lora.plan.yaml
MOST_MB_OF_WHEEL=15 MOST_MB_OF_FOLDER=300

rm -rf "$goal"
mkdir -p "$goal"
"$python" -m venv "$goal/tools"
"$goal/tools/bin/pip" install --quiet --disable-pip-version-check pipx uv

limit() { # limit PATH MB
    local has
    has=$(du -sm --apparent-size "$1" | cut -f1)
    echo "$(basename "$1"): $has MB of $2"
    [ "$has" -le "$2" ]
}

# Starts a program in an empty environment: it plans, exports, and its window opens the plan.
works() { # works PROGRAM
    local clean=(env -i HOME="$goal/home" PATH=/nowhere LC_ALL=C.UTF-8 QT_QPA_PLATFORM=offscreen)
    mkdir -p "$goal/home"
    "${clean[@]}" "$1" estimate "$plan" --json >"$goal/answer.json"
    grep -q '"fits": true' "$goal/answer.json"
    "${clean[@]}" "$1" export "$plan" --to plain --out "$goal/home/run" >/dev/null
    local code=0 tries=0 opened="$goal/home/.config/trainwright/window.ini"
    "${clean[@]}" "$1" "$plan" &
    until grep -qs llama-8b-lora "$opened"; do # it lists the plan as one that was opened
        kill -0 $!
        sleep 0.5
        [ "$((tries += 1))" -lt 240 ]
    done
    kill $!
    wait $! || code=$?
    [ "$code" = 130 ] || { echo "$1: the window ended with $code" >&2; return 1; }
    rm -r "$goal/home"
    echo "$1 plans, exports, and its window opens; $SECONDS s"
}

"$goal/tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$goal/dist" .
wheel=$(echo "$goal"/dist/*.whl)
limit "$wheel" "$MOST_MB_OF_WHEEL"

# A wheel for each platform, with the compiled allocator; only this computer's can be started.
"$goal/tools/bin/pip" install --quiet --disable-pip-version-check hatchling packaging pydantic \
    PyYAML platformdirs ziglang==0.17.1
platforms=$(PYTHONPATH=scripts "$python" -c "import compile_allocator as c; print(*c.TARGETS)")
for platform in $platforms; do
    TRAINWRIGHT_PLATFORM=$platform "$goal/tools/bin/pip" wheel --quiet --no-build-isolation \
        --disable-pip-version-check --no-deps --wheel-dir "$goal/wheels" .
    "$goal/tools/bin/python" -m zipfile -l "$goal"/wheels/*"$platform".whl | grep -c liballocator >/dev/null
done

export PIPX_HOME="$goal/pipx" PIPX_BIN_DIR="$goal/pipx/bin" PIPX_DEFAULT_PYTHON="$python"
"$goal/tools/bin/pipx" install --quiet "$wheel"
works "$PIPX_BIN_DIR/trainwright"

export UV_TOOL_DIR="$goal/uv" UV_TOOL_BIN_DIR="$goal/uv/bin"
"$goal/tools/bin/uv" tool install --quiet --python "$python" "$wheel"
works "$UV_TOOL_BIN_DIR/trainwright"

"$goal/tools/bin/pipx" inject --quiet trainwright pyinstaller
"$PIPX_HOME/venvs/trainwright/bin/python" -m PyInstaller --noconfirm --log-level ERROR \
    --distpath "$goal/dist" --workpath "$goal/work" packaging/trainwright.spec
limit "$goal/dist/trainwright" "$MOST_MB_OF_FOLDER"
works "$goal/dist/trainwright/trainwright"
