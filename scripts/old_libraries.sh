#!/usr/bin/env bash
# Installs older libraries, each set in a folder of its own: old_libraries.sh PYTHON FOLDER
#
# A set goes on PYTHONPATH before the environment, which lends it torch and NumPy. It is installed
# once; all take about 1 GB.
set -euo pipefail

python=$1
folder=$2

into() {
    local name=$1
    shift
    [ -e "$folder/$name" ] && return
    echo "Installing $name"
    # Without dependencies: transformers and TRL would bring another torch.
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$folder/$name.new" "$@"
    mv "$folder/$name.new" "$folder/$name"
}

mkdir -p "$folder"
web=(requests urllib3 idna certifi charset_normalizer)
around=(huggingface_hub==0.26.5 accelerate==1.1.1 peft==0.13.2 "${web[@]}")
tables=(datasets==2.21.0 pyarrow pandas python-dateutil pytz six dill xxhash multiprocess)
asynchronous=(aiohttp aiosignal aiohappyeyeballs attrs frozenlist multidict propcache yarl)

into transformers-4.6 transformers==4.6.1 huggingface_hub==0.0.8 sacremoses click joblib six \
    "${web[@]}"
into transformers-4.47 transformers==4.47.1 tokenizers==0.21.4 "${around[@]}"
into transformers-4.45 transformers==4.45.2 tokenizers==0.20.3 "${around[@]}"
into transformers-4.40 transformers==4.40.2 tokenizers==0.19.1 "${around[@]}"
into trl-0.9 trl==0.9.6 transformers==4.45.2 tokenizers==0.20.3 bitsandbytes==0.50.2 \
    "${around[@]}" "${tables[@]}" "${asynchronous[@]}"
