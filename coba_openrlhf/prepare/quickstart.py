"""Makes the quickstart model and its problems: `python -m coba_openrlhf.prepare.quickstart --out DIR`.

    split_questions -> train.jsonl, eval.jsonl
           |
           v warm-up questions
    build_tokenizer, build_model -> warm_up -> sample_pass_rates -> model/ -> manifest.json

The model is a Qwen2 of about 0.3M parameters with one token per character. A short supervised
warm-up on a deliberately unreliable corpus (see `coba_openrlhf.data.graded_arithmetic`) leaves
it with pass rates from about 0.02 to 0.95, by level.

Q = questions, A = the right and the wrong answer, B = sequences in a batch, T = tokens of a sequence.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coba_openrlhf.data.graded_arithmetic import (
    CHARACTERS,
    LEVEL_LETTERS,
    RIGHT_SHARE,
    Question,
    all_questions,
    split_questions,
)
from coba_openrlhf.prepare.output_folder import (
    MANIFEST_NAME,
    OutputFolderError,
    complete_output_folder,
    open_output_folder,
)

if TYPE_CHECKING:  # torch takes seconds to import: not for --help or a bad argument
    from transformers import Qwen2ForCausalLM, Qwen2Tokenizer

WARMUP = {"steps": 800, "questions": 64, "lr": 3e-3, "threads": 2}
HEAD_DIM = 32  # the smallest one that vLLM's CPU attention supports
MAX_LENGTH = 64  # tokens of prompt and answer
MAX_NEW_TOKENS = 8
PASS_RATE_ROLLOUTS = 8


def build_tokenizer() -> Qwen2Tokenizer:
    """One token per character, plus `<pad>` and `<eos>`.

    AutoTokenizer loads the tokenizer of every Qwen2 checkpoint as a Qwen2Tokenizer, whatever class
    saved it. So this is one: byte-level BPE without merges, which leaves single characters.
    """
    from transformers import Qwen2Tokenizer

    tokens = ["<pad>", "<eos>", *CHARACTERS.replace(" ", "\u0120")]  # \u0120: a space in byte-level BPE
    return Qwen2Tokenizer(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=[],
        unk_token=None,
        eos_token="<eos>",
        pad_token="<pad>",
        padding_side="left",
        model_max_length=MAX_LENGTH,
        clean_up_tokenization_spaces=False,
    )


def build_model(tokenizer: Qwen2Tokenizer) -> Qwen2ForCausalLM:
    """A randomly initialised Qwen2; torch's global seed decides the weights."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    num_heads = 4
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=num_heads * HEAD_DIM,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=num_heads,
        num_key_value_heads=num_heads,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen2ForCausalLM(config)


def warm_up(
    model: Qwen2ForCausalLM,
    tokenizer: Qwen2Tokenizer,
    questions: list[Question],
    rng: np.random.Generator,
) -> float:
    """Supervised training on the unreliable corpus, in place; returns the last loss.

    Every question comes with both answers, each with its share of the corpus as weight: the expectation over a corpus
    that has one of them. Drawing one instead leaves noise that hides, on some machines for the whole warm-up, that
    the level decides which answer is meant. The loss counts answer tokens only. All sequences have the same length,
    so there is no padding.
    """
    import torch

    prompt_length = len(questions[0].prompt(0))
    answers_QA = [(question.right_answer(), question.wrong_answer()) for question in questions]
    texts = [question.prompt(0) + a for question, pair in zip(questions, answers_QA, strict=True) for a in pair]
    ids = torch.tensor(tokenizer([text + tokenizer.eos_token for text in texts])["input_ids"])
    token_ids_QAT = ids.view(len(questions), 2, -1)
    level_token_ids = torch.tensor(tokenizer.convert_tokens_to_ids(list(LEVEL_LETTERS)))
    right_share = torch.tensor(RIGHT_SHARE)

    steps, num_questions = WARMUP["steps"], WARMUP["questions"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=WARMUP["lr"], betas=(0.9, 0.98), weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / 50, 2 * (steps - s) / steps, 1))
    model.train()
    start = time.monotonic()
    for step in range(1, steps + 1):
        level_Q = rng.integers(len(LEVEL_LETTERS), size=num_questions)
        input_QAT = token_ids_QAT[rng.integers(len(questions), size=num_questions)]
        input_QAT[:, :, 0] = level_token_ids[level_Q, None]
        weight_QA = torch.stack([right_share[level_Q], 1 - right_share[level_Q]], dim=1)
        input_BT = input_QAT.flatten(0, 1)
        logits_BTV = model(input_BT).logits[:, prompt_length - 1 : -1]
        target_BT = input_BT[:, prompt_length:]
        loss_BT = torch.nn.functional.cross_entropy(logits_BTV.transpose(1, 2), target_BT, reduction="none")
        loss = (loss_BT.mean(dim=1) * weight_QA.flatten()).sum() / num_questions
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            elapsed = time.monotonic() - start
            print(f"warm-up step {step}/{steps}  loss {loss.item():.3f}  {elapsed:.0f} s", flush=True)
    return loss.item()


def sample_pass_rates(model: Qwen2ForCausalLM, tokenizer: Qwen2Tokenizer, rows: list[dict]) -> list[float]:
    """Mean exact-match pass rate of each level, sampled at temperature 1."""
    import torch

    model.eval()
    inputs = tokenizer([row["input"] for row in rows], return_tensors="pt")
    with torch.no_grad():
        output_RT = model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            do_sample=True,
            temperature=1.0,
            top_k=0,
            num_return_sequences=PASS_RATE_ROLLOUTS,
            max_new_tokens=MAX_NEW_TOKENS,
        )
    answers_R = tokenizer.batch_decode(output_RT[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    right_by_level: list[list[bool]] = [[] for _ in LEVEL_LETTERS]
    for i, answer in enumerate(answers_R):
        row = rows[i // PASS_RATE_ROLLOUTS]
        right_by_level[row["level"]].append(answer == row["label"])
    return [round(float(np.mean(right)), 3) for right in right_by_level]


def write_jsonl(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_quickstart(folder: Path, *, seed: int, num_train: int, num_eval: int) -> dict:
    """Writes the problems and the warmed-up model to `folder` and returns what the manifest reports."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(WARMUP["threads"])
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)

    split = split_questions(num_train, num_eval, rng)
    write_jsonl(folder / "train.jsonl", split.train_rows)
    write_jsonl(folder / "eval.jsonl", split.eval_rows)

    tokenizer = build_tokenizer()
    model = build_model(tokenizer)
    start = time.monotonic()
    loss = warm_up(model, tokenizer, split.warmup_questions, rng)
    warmup_seconds = time.monotonic() - start
    model.to(torch.bfloat16).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")

    # Measured on what was saved, loaded the way the trainer and vLLM load it.
    model = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    pass_rates = sample_pass_rates(model, tokenizer, split.eval_rows)
    return {
        "num_parameters": model.num_parameters(),
        "warmup_loss": round(loss, 4),
        "warmup_seconds": round(warmup_seconds, 1),
        "eval_pass_rate": round(float(np.mean(pass_rates)), 3),
        "eval_pass_rate_by_level": dict(zip(LEVEL_LETTERS, pass_rates, strict=True)),
    }


def _positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be >= 1, got {value}")
    return value


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m coba_openrlhf.prepare.quickstart",
        description="Make the quickstart model (a tiny Qwen2, warmed up in about a minute on a CPU) "
        "and its graded arithmetic problems.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for model/, train.jsonl and eval.jsonl")
    parser.add_argument("--seed", type=int, default=0, help="seed of problems, weights and warm-up (default: 0)")
    parser.add_argument("--num-train", type=_positive_int, default=512, help="training problems (default: 512)")
    parser.add_argument("--num-eval", type=_positive_int, default=512, help="held-out problems (default: 512)")
    parser.add_argument("--force", action="store_true", help="overwrite what --out holds")
    args = parser.parse_args(argv)
    if args.seed < 0:
        parser.error(f"--seed must be >= 0, got {args.seed}")
    num_questions = len(all_questions())
    if args.num_train + args.num_eval > num_questions:
        parser.error(
            f"--num-train + --num-eval must be <= {num_questions}, "
            f"got {args.num_train} + {args.num_eval} = {args.num_train + args.num_eval}"
        )

    settings = {
        "kind": "quickstart",
        "seed": args.seed,
        "num_train": args.num_train,
        "num_eval": args.num_eval,
        "right_share": list(RIGHT_SHARE),
        "warmup": WARMUP,
    }
    try:
        if open_output_folder(args.out, settings, force=args.force):
            print(f"{args.out} is complete with the same settings: reused (make it again with --force)")
            return
    except OutputFolderError as error:
        parser.error(str(error))
    results = make_quickstart(args.out, seed=args.seed, num_train=args.num_train, num_eval=args.num_eval)
    complete_output_folder(args.out, settings, results)
    print(f"wrote {args.out}: {results['num_parameters']:,} parameters; details in {MANIFEST_NAME}")
    for letter, pass_rate in results["eval_pass_rate_by_level"].items():
        print(f"  level {letter}: pass rate {pass_rate:.3f}")
    print(f"  held-out mean: {results['eval_pass_rate']:.3f}")


if __name__ == "__main__":
    main()
