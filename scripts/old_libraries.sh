#!/usr/bin/env bash
# Installs older libraries, each set in a folder of its own: old_libraries.sh PYTHON FOLDER
#
# Its site-packages goes on PYTHONPATH before the environment, which lends it torch and NumPy. A set is
# installed once; all take about 3 GB.
set -euo pipefail

python=$1
folder=$2

into() {
    local name=$1
    shift
    [ -e "$folder/$name" ] && return
    echo "Installing $name"
    # Without dependencies: transformers and TRL would bring another torch. dill, which datasets
    # uses, takes a module for the user's own unless its path says site-packages.
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$folder/$name.new/site-packages" "$@"
    mv "$folder/$name.new" "$folder/$name"
}

mkdir -p "$folder"
web=(requests urllib3 idna certifi charset_normalizer)
around=(huggingface_hub==0.26.5 accelerate==1.1.1 peft==0.13.2 "${web[@]}")
rows=(
    pyarrow pandas python-dateutil pytz six dill xxhash multiprocess
    aiohttp aiosignal aiohappyeyeballs attrs frozenlist multidict propcache yarl
)

into transformers-4.6 transformers==4.6.1 huggingface_hub==0.0.8 sacremoses click joblib six \
    "${web[@]}"
into transformers-4.47 transformers==4.47.1 tokenizers==0.21.4 "${around[@]}"
into transformers-4.45 transformers==4.45.2 tokenizers==0.20.3 "${around[@]}"
into transformers-4.40 transformers==4.40.2 tokenizers==0.19.1 "${around[@]}"
into trl-0.9 trl==0.9.6 transformers==4.45.2 tokenizers==0.20.3 bitsandbytes==0.50.2 \
    datasets==2.21.0 "${around[@]}" "${rows[@]}"
into llama-factory llamafactory==0.9.5 transformers==5.6.0 tokenizers==0.22.2 \
    huggingface_hub==1.7.0 accelerate==1.11.0 peft==0.18.1 trl==0.24.0 bitsandbytes==0.50.2 \
    datasets==4.0.0 einops omegaconf antlr4-python3-runtime==4.9.3 httpx httpcore anyio h11 \
    sniffio "${web[@]}" "${rows[@]}"
into axolotl axolotl==0.19.0 transformers==5.16.1 tokenizers==0.23.1 huggingface_hub==1.17.0 \
    accelerate==1.13.0 peft==0.20.0 trl==1.9.0 bitsandbytes==0.50.2 datasets==4.8.4 addict art \
    axolotl-contribs-lgpl==0.0.7 axolotl-contribs-mit==0.0.6 colorama fire posthog==6.7.11 backoff \
    distro python-dotenv schedulefree==1.4.1 termcolor httpx httpcore anyio h11 sniffio \
    "${web[@]}" "${rows[@]}"
# What runs beside the environment's own transformers, PEFT and accelerate.
into today trl==1.16.0 datasets==5.2.0 bitsandbytes==0.50.2 diffusers==0.42.1 \
    lightning==2.6.6 pytorch-lightning==2.6.6 lightning-utilities torchmetrics \
    importlib_metadata zipp "${web[@]}" "${rows[@]}"
