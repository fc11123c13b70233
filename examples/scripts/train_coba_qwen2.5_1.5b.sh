#!/usr/bin/env bash
# Train Qwen2.5-1.5B with per-prompt rollout budgets on 4 GPUs. Options go on to the training job:
#
#   examples/scripts/train_coba_qwen2.5_1.5b.sh --coba.run_dir runs/my_run --data.prompt_dataset my.jsonl
#   examples/scripts/train_coba_qwen2.5_1.5b.sh --dry_run
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/submit.sh" 4 configs/qwen2.5-1.5b.yaml "$@"
