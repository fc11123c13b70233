#!/usr/bin/env bash
# Submit a training job to Ray, starting one on this node if none answers. The recipes beside this file call it:
#
#   examples/scripts/submit.sh NUM_GPUS CONFIG [options of coba_openrlhf.train_grpo]
#
# A cluster that is up already is used when RAY_DASHBOARD names it, e.g. RAY_DASHBOARD=http://head:8265; this folder
# and the data must then lie under the same path on its head node.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

NUM_GPUS=$1
CONFIG=$2
shift 2

if [[ -z "${RAY_DASHBOARD:-}" ]]; then
  RAY_DASHBOARD=http://127.0.0.1:8265
  if ! ray job list --address "$RAY_DASHBOARD" >/dev/null 2>&1; then
    ray start --head --num-gpus "$NUM_GPUS" --dashboard-host 127.0.0.1 --dashboard-port 8265 --disable-usage-stats
    # 52365 is where Ray's agents listen unless told otherwise.
    python -m coba_openrlhf.ray_ready --dashboard "$RAY_DASHBOARD" --agent http://127.0.0.1:52365
  fi
fi

# The job starts in a folder of Ray's, so it changes to this one. 'env -C' does that without a shell: Ray would expand
# "$@" of one too early. Ray stays up afterwards; 'ray stop' ends it.
ray job submit --address "$RAY_DASHBOARD" -- \
  env -C "$PWD" python -m coba_openrlhf.train_grpo --config "$CONFIG" "$@"
