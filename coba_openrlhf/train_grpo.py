"""Entry point: configuration -> preflight -> launch.

    python -m coba_openrlhf.train_grpo --config configs/quickstart_cpu.yaml --coba.tau 7
    ray job submit -- python -m coba_openrlhf.train_grpo --config ...

Exit status: 0 when training finished (or there was nothing left to do), 2 for a configuration that cannot run,
1 for anything that failed on the way.
"""

import os
import sys
import time
from pathlib import Path

from coba_openrlhf.config import ConfigError, RunConfig, check, load_config, to_yaml


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        config, dry_run = load_config(sys.argv[1:] if argv is None else argv)
        check(config)
        return _train(config, dry_run)
    except ConfigError as error:
        print(f"configuration error: {error}", file=sys.stderr)
        return 2


def _train(config: RunConfig, dry_run: bool) -> int:
    from coba_openrlhf import preflight
    from coba_openrlhf.checkpoints import select_checkpoint
    from coba_openrlhf.device import device_kind

    # realpath, not Path.resolve, which raises where links form a loop; check_folders says what is wrong with a path.
    run_dir = Path(os.path.realpath(config.coba.run_dir or f"runs/{time.strftime('%Y%m%d-%H%M%S')}"))
    try:
        device = device_kind()
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if dry_run:
        print(to_yaml(config))
        print(preflight.describe(config, run_dir, device))
        return 0
    preflight.check_folders(config, run_dir)
    checkpoint = None
    if config.ckpt.load_enable:
        checkpoints = Path(config.ckpt.path).resolve() if config.ckpt.path else run_dir / "checkpoints"
        checkpoint = select_checkpoint(checkpoints, config.actor.num_nodes * config.actor.num_gpus_per_node)
    preflight.check_run_dir(run_dir, resume=config.ckpt.load_enable, checkpoint=checkpoint)
    preflight.check_machine(config, device)

    # Imported late: these load torch, ray, vllm and deepspeed.
    import ray

    from coba_openrlhf import console, launch

    launch.start_ray(config, device, log_to_driver=config.coba.log_to_driver)
    try:
        preflight.write_config(run_dir, to_yaml(config))
        print(preflight.describe(config, run_dir, device), flush=True)
        if config.ckpt.load_enable:
            print(f"resuming from   {checkpoint or 'nothing: no checkpoint yet'}", flush=True)
        launch.run(config, run_dir, device, console.show)
    finally:
        ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
