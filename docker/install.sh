#!/usr/bin/env bash
# Usage: install.sh EXTRA [REQUIREMENT...]
# Installs PyTorch's CPU build and the project with EXTRA, every version held by constraints.txt.
set -euo pipefail

extra="$1"
shift
torch_version="$(sed -n 's/^torch==\([0-9][0-9.]*\).*/\1/p' constraints.txt)"
: "${torch_version:?constraints.txt names no torch==VERSION}"

# "+cpu" exactly: the plain version would bring gigabytes of CUDA libraries. Only this one package comes from the
# other index (--no-deps); everything else, its dependencies too, follows from the usual one below.
torch="torch==${torch_version}+cpu"
if ! pip install --no-cache-dir --no-deps ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} "$torch"; then
    echo "$torch was not found: set TORCH_INDEX_URL in .env, see .env.example" >&2
    exit 1
fi

pip install --no-cache-dir --constraint constraints.txt ".[${extra}]" "$@"
python -c "import pyspark, torch; assert torch.version.cuda is None, torch.__version__; print(pyspark.__version__)"
