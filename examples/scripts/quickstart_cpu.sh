#!/usr/bin/env bash
# The main job on this machine without a GPU: make a tiny model, start a local Ray, submit the training job to it,
# draw the report, stop Ray. Options are passed on to the training job:
#
#   examples/scripts/quickstart_cpu.sh --coba.strategy uniform
set -euo pipefail
cd "$(dirname "$0")/../.."

RUN=runs/quickstart
THIS_RUN=$RUN/$(date +%Y%m%d-%H%M%S)
mkdir -p "$RUN"
python -m coba_openrlhf.prepare.quickstart --out "$RUN/data"

# A Ray of its own, on free ports and in a folder of its own, so that another Ray on this machine is left alone.
# Short, because Ray's socket names must fit in 107 bytes.
RAY_TMP=$(mktemp -d /tmp/coba.XXXX)
free_port() { python -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'; }
PORT=$(free_port)
DASHBOARD=$(free_port)
AGENT=$(free_port)
unset RAY_ADDRESS
export RAY_DEDUP_LOGS=0 RAY_USAGE_STATS_ENABLED=0

# --block keeps Ray in one process group, which ends with this script and nothing else does.
setsid ray start --head --block --port "$PORT" --dashboard-port "$DASHBOARD" --dashboard-host 127.0.0.1 \
  --dashboard-agent-listen-port "$AGENT" --num-cpus 6 --num-gpus 3 --temp-dir "$RAY_TMP" --disable-usage-stats >"$RUN/ray.log" 2>&1 &
RAY_PID=$!
stop_ray() {
  kill -TERM -- "-$RAY_PID" 2>/dev/null || true
  for _ in $(seq 50); do
    kill -0 -- "-$RAY_PID" 2>/dev/null || break
    sleep 0.2
  done
  kill -KILL -- "-$RAY_PID" 2>/dev/null || true
  rm -rf "$RAY_TMP"
}
trap stop_ray EXIT
echo "waiting for Ray (log: $RUN/ray.log)"
python -m coba_openrlhf.ray_ready --pid "$RAY_PID" \
  --dashboard "http://127.0.0.1:$DASHBOARD" --agent "http://127.0.0.1:$AGENT" || {
  tail -20 "$RUN/ray.log" >&2
  exit 1
}

ray job submit --address "http://127.0.0.1:$DASHBOARD" -- \
  env -C "$PWD" python -m coba_openrlhf.train_grpo --config configs/quickstart_cpu.yaml \
  --coba.run_dir "$THIS_RUN" "$@"
python -m coba_openrlhf.report "$THIS_RUN"
