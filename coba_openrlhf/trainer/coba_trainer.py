"""The controller: one step after the other, with the next step's budgets solved on the side.

step t    generate ── score ──┬── observe(t), choose and allocate(t+1) CapabilityAllocator
                              └── experience, optimise(t), sync        PolicyActors (+ ReferenceActors)
step t+1  generate with the budgets that are there already

fit ─ _run_step ─┬─ generate_in_one_wave                  RolloutEngines generate and score
                 ├─ _look_ahead                           object refs: observe(t), the next prompts, allocate(t + 1)
                 ├─ BasePPOTrainer.train_step             RaggedExperienceMaker, ppo_train, broadcast
                 └─ RunLog                                metrics.jsonl, allocations.parquet

With coba.pass_rate.source probe, generate_in_two_waves takes the place of allocate(t + 1) and generation: budgets
are made in the middle of step t + 1, from its own first rollouts.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import ray

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.trainer.ppo_trainer import BasePPOTrainer
from openrlhf.utils.utils import get_tokenizer

from coba_openrlhf.allocation import AllocationConfig, DataChange
from coba_openrlhf.config.rules import require_room_for_revisits
from coba_openrlhf.data.prompt_dataset import load_prompts
from coba_openrlhf.data.prompt_stream import PromptBatch, PromptStream
from coba_openrlhf.rewards.verifier_choice import require_known_sources

from .evaluator import Evaluator, eval_top_p
from .experience_maker import RaggedExperienceMaker
from .ledger import Ledger
from .padding import pad_rollouts, step_multiple
from .report import Report
from .rollout_batch import RolloutBatch
from .run_log import RunLog
from .samples_generator import BudgetedSamplesGenerator
from .waves import GeneratedStep, generate_in_one_wave, generate_in_two_waves

TIMED_PHASES = ("generation", "make_experience", "ppo_train", "broadcast")


@dataclass(frozen=True)
class _Planned:
    """What the next step will be, while it is being worked out.

    Attributes:
        upcoming: The next prompts of the data.
        ids_ref: Ids of the batch: the first of ``upcoming``, then those that come again.
        num_revisited_ref: How many come again.
        allocation_ref: Budgets of the batch; None if they wait for a first wave.
    """

    upcoming: PromptBatch
    ids_ref: ray.ObjectRef
    num_revisited_ref: ray.ObjectRef
    allocation_ref: ray.ObjectRef | None


class CobaTrainer(BasePPOTrainer):
    """Trains with GRPO under per-prompt rollout budgets.

    Args:
        strategy: OpenRLHF strategy; carries the options.
        actor_model_group: Policy ranks.
        reference_model_group: Reference ranks, or None without KL.
        vllm_engines: Rollout engines.
        allocator: Handle of the ``CapabilityAllocator`` actor.
        allocation_config: Its settings.
        run_dir: Folder of the run.
    """

    def __init__(
        self,
        strategy,
        actor_model_group,
        reference_model_group,
        vllm_engines,
        allocator,
        allocation_config: AllocationConfig,
        run_dir: str,
    ) -> None:
        args = strategy.args
        tokenizer = get_tokenizer(
            args.actor.model_name_or_path, None, "left", strategy, use_fast=not args.data.disable_fast_tokenizer
        )
        super().__init__(strategy, actor_model_group, None, None, reference_model_group, vllm_engines, tokenizer)
        self.experience_maker = RaggedExperienceMaker(
            actor_model_group, None, None, reference_model_group, self.kl_ctl, strategy, tokenizer
        )
        self._allocator = allocator
        self._allocation_config = allocation_config
        self._was_fallback = False
        self._run_dir = run_dir
        self._ledger = Ledger()
        dataset = load_prompts(strategy, tokenizer)
        sources = set(dataset.datasources)
        self._prompt_ids = dataset.prompt_ids
        self._data_sets = [("training prompts", len(dataset), dataset.num_overlong)]
        require_room_for_revisits(len(dataset), args.rollout.batch_size, args.coba.revisit)
        self._stream = PromptStream(dataset, args.rollout.batch_size, args.train.num_episodes, args.train.seed)
        self._generator = BudgetedSamplesGenerator(strategy, tokenizer, vllm_engines)
        self._generate_kwargs = {
            "temperature": args.rollout.temperature,
            "top_p": args.rollout.top_p,
            "max_len": args.data.max_len,
            "max_new_tokens": args.rollout.max_new_tokens,
        }
        self._evaluator = None
        if args.eval.dataset:
            held_out = load_prompts(strategy, tokenizer, evaluation=True)
            sources |= set(held_out.datasources)
            self._data_sets.append(("held-out problems", len(held_out), held_out.num_overlong))
            self._evaluator = Evaluator(held_out, self._generator, args.eval.n_samples_per_prompt, args.train.seed)
        require_known_sources(args.coba.verifier_of, sources)

    def num_optimizer_steps(self) -> int:
        """Optimiser steps of the whole run, for the learning-rate schedule."""
        args = self.args
        full, rest = divmod(len(self._prompt_ids), args.rollout.batch_size)
        rollouts = [args.rollout.batch_size * args.rollout.n_samples_per_prompt] * full
        rollouts += [rest * args.rollout.n_samples_per_prompt] if rest else []
        multiple = step_multiple(args)
        padded = sum(math.ceil(r / multiple) * multiple for r in rollouts)
        return padded // args.train.batch_size * args.train.max_epochs * args.train.num_episodes

    def fit(self) -> Iterator[Report]:
        """Train to the end of the data, from the start or from the checkpoint that was loaded.

        Yields:
            A ``Report`` per evaluation and per step, as they happen.

        Raises:
            RuntimeError: The loss or the gradient is not finite.
            ValueError: The checkpoint shares no prompt with the data set, or has another allocator configuration.
            ray.exceptions.RayError: An actor failed.
        """
        step, data_note = self._restore()
        self._run_log = RunLog(self._run_dir, step)
        self._num_steps = step + self._stream.num_remaining
        for name, num_prompts, num_overlong in self._data_sets:
            yield self._note(step, f"{num_prompts} {name}; {num_overlong} overlong ones left out")
        if step:
            yield self._note(step, f"resumed after step {step} of {self._num_steps}")
            if data_note:
                yield self._note(step, data_note)
        elif self._evaluator and self.args.coba.eval.at_start:
            yield self._evaluate(step)
        planned = self._plan(next(self._stream, None))
        while planned is not None:
            step += 1
            metrics, planned, client_states = self._run_step(step, planned)
            yield Report("step", step, self._num_steps, _numbers(metrics))
            yield from self._notes_of_guard(step, metrics)
            evaluation = self._evaluate(step) if self._evaluates_at(step, is_last=planned is None) else None
            client_states["ledger"] = self._ledger.state_dict()
            self.save_logs_and_checkpoints(step, metrics, client_states)
            if evaluation is not None:
                yield evaluation
                self.save_best_checkpoint(evaluation.metrics, step, client_states)
        for tracker in (self.wandb_logger, self.tensorboard_logger):
            if tracker:
                tracker.close()

    def _run_step(self, step: int, planned: _Planned) -> tuple[dict[str, object], _Planned | None, dict[str, object]]:
        """One step: its metrics, the next batch with its budgets under way, and what a checkpoint needs."""
        started = time.perf_counter()
        batch, num_revisited = self._chosen(planned)
        choice_seconds = time.perf_counter() - started
        generated = self._generate(batch, planned.allocation_ref)
        rollouts, allocation = generated.rollouts, generated.allocation
        assert len(rollouts) == allocation.budget_P.sum(), "every budgeted rollout must come back"

        # The place of the next batch, before the look-ahead draws it: a resumed run draws it again.
        resume_point = self._stream.state_dict()
        observed_ref, allocator_state_ref, next_planned = self._look_ahead(step, rollouts)
        padded = pad_rollouts(rollouts, step_multiple(self.args))
        status, _ = self.train_step(padded, step - 1)
        _check_finite(status, step)
        status["timing/generation"] = generated.seconds - generated.exposed_seconds
        status["timing/step_total"] = time.perf_counter() - started
        num_padding = len(padded) - len(rollouts)
        _take_padding_out(status, rollouts, num_padding, kl_is_loss=self.args.algo.kl.use_loss)

        self._ledger.add_step(rollouts, {n: status[f"timing/{n}"] for n in TIMED_PHASES})
        metrics = {
            **status,
            **rollouts.metrics(),
            "rollout/num_padding": float(num_padding),
            **{f"coba/{name}": value for name, value in ray.get(observed_ref).items()},
            "coba/exposed_seconds": choice_seconds + generated.exposed_seconds,
            "coba/revisited_rate": num_revisited / len(batch),
            **self._ledger.metrics(),
        }
        self._run_log.write_metrics(step, _numbers(metrics))
        self._run_log.write_allocations(
            step, rollouts, allocation, self._allocation_config, generated.first_wave, num_revisited
        )
        client_states = {
            "global_step": step,
            "data_loader_state_dict": resume_point,
            "allocator": ray.get(allocator_state_ref) if allocator_state_ref else None,
        }
        return metrics, next_planned, client_states

    def _plan(self, upcoming: PromptBatch | None) -> _Planned | None:
        """Ask for the prompts of a batch and their budgets, without waiting for either."""
        if upcoming is None:
            return None
        group_size = self.args.rollout.n_samples_per_prompt
        choice = self._allocator.choose_prompts.options(num_returns=2)
        ids_ref, count_ref = choice.remote(upcoming.prompt_ids, group_size)
        if self._allocation_config.pass_rate_source == "probe":
            return _Planned(upcoming, ids_ref, count_ref, None)
        allocation_ref = self._allocator.allocate.remote(ids_ref, self._total_budget(upcoming))
        return _Planned(upcoming, ids_ref, count_ref, allocation_ref)

    def _chosen(self, planned: _Planned) -> tuple[PromptBatch, int]:
        """The planned batch, and how many of its prompts come again, which are its last ones."""
        prompt_ids, num_revisited = ray.get([planned.ids_ref, planned.num_revisited_ref])
        self._stream.give_back(num_revisited)
        return self._stream.batch_of(prompt_ids, planned.upcoming.episode), num_revisited

    def _total_budget(self, batch: PromptBatch) -> int:
        return len(batch) * self.args.rollout.n_samples_per_prompt

    def _generate(self, batch: PromptBatch, allocation_ref: ray.ObjectRef | None) -> GeneratedStep:
        options = self._generate_kwargs
        if allocation_ref is not None:
            return generate_in_one_wave(self._generator, batch, allocation_ref, **options)
        probe_rollouts, total = self._allocation_config.probe_rollouts, self._total_budget(batch)
        return generate_in_two_waves(self._generator, batch, self._allocator, total, probe_rollouts, **options)

    def _look_ahead(
        self, step: int, rollouts: RolloutBatch
    ) -> tuple[ray.ObjectRef, ray.ObjectRef | None, _Planned | None]:
        """Send observe(t), the state for a checkpoint if one is due, and allocate(t + 1), in this order."""
        observed_ref = self._allocator.observe.remote(*rollouts.observations(), policy_version=step - 1)
        next_batch = next(self._stream, None)
        state_ref = self._allocator.state_dict.remote() if self._saves_at(step, is_last=next_batch is None) else None
        return observed_ref, state_ref, self._plan(next_batch)

    def _evaluates_at(self, step: int, *, is_last: bool) -> bool:
        due = step % self.args.eval.steps == 0 or (is_last and self.args.coba.eval.at_end)
        return self._evaluator is not None and due

    def _saves_at(self, step: int, *, is_last: bool) -> bool:
        """Whether a regular or a best checkpoint may be written after this step."""
        best = self._evaluates_at(step, is_last=is_last) and self.args.ckpt.best_metric_key != "none"
        return step % self.args.ckpt.save_steps == 0 or best

    def _evaluate(self, step: int) -> Report:
        assert self._evaluator is not None
        started = time.perf_counter()
        sampling = {"temperature": self.args.eval.temperature, "top_p": eval_top_p(self.args)}
        metrics = self._evaluator.evaluate(**{**self._generate_kwargs, **sampling})
        self._ledger.eval_rollouts += self._evaluator.num_rollouts
        self._ledger.charge("evaluation", time.perf_counter() - started)
        self._run_log.write_metrics(step, {**metrics, **self._ledger.metrics()})
        for tracker in (self.wandb_logger, self.tensorboard_logger):
            if tracker:
                tracker.log_eval(step, metrics)
        return Report("eval", step, self._num_steps, metrics)

    def _restore(self) -> tuple[int, str]:
        """Continue from the checkpoint that the policy ranks have loaded.

        Returns:
            Its step, 0 for none; and what to say if the training prompts are not those it was made with.

        Raises:
            ValueError: It shares no prompt with the data set, or has another allocator configuration.
        """
        states = self.init_checkpoint_states()
        if not states.get("global_step"):
            ray.get(self._allocator.set_data.remote(self._prompt_ids))
            return 0, ""
        self.restore_best_checkpoint_state(states)
        if self.args.ckpt.best_metric_key:  # named now: the checkpoint's choice does not count
            self.best_eval_metric_key = self.args.ckpt.best_metric_key
        ray.get(self._allocator.load_state_dict.remote(states["allocator"]))
        change: DataChange = ray.get(self._allocator.set_data.remote(self._prompt_ids))
        if len(change.edited) + len(change.added) == len(self._prompt_ids):
            raise ValueError(
                "the checkpoint was made with another data set: not one training prompt is the same "
                "(data.prompt_dataset, its columns, the template or the length limits changed); resume with the same "
                "data or start a new run"
            )
        is_same_data = self._stream.load_state_dict(states["data_loader_state_dict"])
        self._ledger.load_state_dict(states["ledger"])
        self.broadcast_to_vllm()
        note = (
            f"training prompts changed since the checkpoint: {change or 'other order'}; edited and added ones start "
            "without history, and the interrupted episode starts again"
        )
        return states["global_step"], "" if is_same_data else note

    def _notes_of_guard(self, step: int, metrics: dict[str, object]) -> Iterator[Report]:
        """Says loudly when budgets became uniform because estimates misled, and when they no longer are."""
        is_fallback = bool(metrics.get("coba/fallback", 0.0))
        if is_fallback != self._was_fallback:
            self._was_fallback = is_fallback
            steps = self._allocation_config.fallback_steps
            yield self._note(
                step,
                f"WARNING: pass-rate estimates predicted worse than the plain mean for {steps} steps in a row: budgets "
                "are uniform from this step on, until they predict better (coba.fallback_steps)"
                if is_fallback
                else "pass-rate estimates predict better than the plain mean again: budgets follow the rule",
            )

    def _note(self, step: int, text: str) -> Report:
        return Report("note", step, self._num_steps, {}, text)


def _take_padding_out(status: dict[str, object], rollouts: RolloutBatch, num_padding: int, *, kl_is_loss: bool) -> None:
    """Make upstream's means over samples means over real rollouts.

    Padding enters those means with zeros (see ``padding.py``), so a factor puts them right. Reward and lengths
    go: they describe shaped rewards, and ``rollout/*`` has the raw ones.
    """
    for name in ("reward", "response_length", "total_length", "truncated", "response_clip_ratio"):
        status.pop(name, None)
    sample_means = {"return", "group_reward_std", "coba/group_weight_max", *rollouts.experiences[0].info}
    if not kl_is_loss:  # as a loss, KL is a mean over tokens, of which padding has none
        sample_means |= {"kl", "logprobs_diff"}
    for name in sample_means & status.keys():
        status[name] *= 1.0 + num_padding / len(rollouts)  # type: ignore[operator]


def _check_finite(status: dict[str, object], step: int) -> None:
    """A run on NaN weights never recovers, and nothing downstream would notice.

    Raises:
        RuntimeError: The policy loss or the gradient norm is not finite.
    """
    for name in ("policy_loss", "actor_grad_norm"):
        value = status.get(name, 0.0)
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise RuntimeError(f"step {step}: {name} is {value}; the policy is no longer usable")


def _numbers(metrics: dict[str, object]) -> dict[str, float]:
    """The numeric metrics; upstream mixes in a sample of text."""
    return {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
