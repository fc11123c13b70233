#!/usr/bin/env bash
# Train Qwen2.5-1.5B with per-prompt rollout budgets on 4 GPUs of this node. Options go on to the training job:
#
#   examples/scripts/train_coba_qwen2.5_1.5b.sh --coba.run_dir runs/my_run --data.prompt_dataset my.jsonl
#   examples/scripts/train_coba_qwen2.5_1.5b.sh --dry_run
#
# A cluster that is up already is used when RAY_DASHBOARD names it, e.g. RAY_DASHBOARD=http://head:8265; this folder
# and the data must then lie under the same path on its head node.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ -z "${RAY_DASHBOARD:-}" ]]; then
  RAY_DASHBOARD=http://127.0.0.1:8265
  ray_answers() { ray job list --address "$RAY_DASHBOARD" >/dev/null 2>&1; }
  if ! ray_answers; then
    ray start --head --num-gpus 4 --dashboard-host 127.0.0.1 --dashboard-port 8265 --disable-usage-stats
    for _ in $(seq 30); do
      ray_answers && break
      sleep 1
    done
  fi
fi

# The job starts in a folder of Ray's, so it changes to this one. 'env -C' does that without a shell: Ray would expand
# "$@" of one too early. Ray stays up afterwards; 'ray stop' ends it.
ray job submit --address "$RAY_DASHBOARD" -- \
  env -C "$PWD" python -m coba_openrlhf.train_grpo --config configs/qwen2.5-1.5b.yaml "$@"
