"""What a person sees while a run goes on: one line per step."""

from coba_openrlhf.trainer.report import Report


def show(report: Report) -> None:
    """Print one report and flush, so that ``ray job logs`` follows."""
    print(render(report), flush=True)


def render(report: Report) -> str:
    """A report as one line of at most about 110 characters."""
    m = report.metrics
    where = f"[{report.step:>{len(str(report.num_steps))}}/{report.num_steps}]"
    if report.kind == "note":
        return f"{where} {report.text}"
    if report.kind == "eval":
        scores = "  ".join(f"{k.removeprefix('eval_')} {v:.3f}" for k, v in m.items() if "_pass" in k)
        return f"{where} held-out  {scores}"
    passed, signal = 1 - m.get("coba/failure_rate", 1.0), m.get("coba/effective_group_rate", 0.0)
    return (
        f"{where} reward {m['rollout/reward_mean']:.3f}  pass {passed:.3f}  signal {signal:4.0%}  "
        f"budgets {m['coba/budget_min']:.0f}-{m['coba/budget_max']:.0f}  sum {m['rollout/num_samples']:.0f}  "
        f"len {m['rollout/response_length_mean']:.0f}  step {m['timing/step_total']:.1f}s  "
        f"wait {1e3 * m['coba/exposed_seconds']:.1f}ms"
    )
