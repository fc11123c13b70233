"""The data sets that are known: where they are, and which of their columns mean what.

The hub was out of reach when this was written; docs/data.md says what was looked at instead.
"""

from dataclasses import dataclass

# What instructions around a problem look like in the data themselves; the template is the run's business.
BOXED = "\nPlease reason step by step, and put your final answer within \\boxed{}."
DAPO_HEAD = (
    "Solve the following math problem step by step. The last line of your response should be of the form "
    "Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n"
)
DAPO_TAIL = '\n\nRemember to put your answer on its own line after "Answer:".'


@dataclass(frozen=True)
class Spec:
    """A data set as it is published.

    Attributes:
        use: ``train`` or ``test``.
        hub: Name on the Hugging Face hub; None where only a local file is known.
        config: Configuration on the hub; None for the only one.
        split: Split on the hub.
        file: Name of a local file without its ending.
        prompt: Columns that may hold the problem, the first one that is there counts; ``a.b`` is a field.
        label: The same for the answer.
        id: The same for the row's id; rows are numbered where there is none.
        keep: Columns that are kept beside the four of every data set, as text.
        context: Column with text that belongs before the problem.
        strip_head: Instruction before every problem, taken away.
        strip_tail: Instruction after every problem, taken away.
        answer_after: The answer is what follows the last one of these marks.
        has_python: Some answers are Python, which is written as LaTeX: ``np.arcsin(10/13)``, ``-1./3``.
        is_repeated: Rows are repeated on the hub: one of each is kept.
    """

    use: str
    hub: str | None
    file: str
    config: str | None = None
    split: str = "test"
    prompt: tuple[str, ...] = ("problem", "question")
    label: tuple[str, ...] = ("answer",)
    id: tuple[str, ...] = ("id", "unique_id")
    keep: tuple[str, ...] = ()
    context: str | None = None
    strip_head: str = ""
    strip_tail: str = ""
    answer_after: str | None = None
    has_python: bool = False
    is_repeated: bool = False


_MAWPS = {"prompt": ("input",), "label": ("target",)}

SPECS: dict[str, Spec] = {
    "dapo-math-17k": Spec(
        "train",
        "BytedTsinghua-SIA/DAPO-Math-17k",
        "dapo-math-17k",
        split="train",
        prompt=("prompt",),
        label=("reward_model.ground_truth",),
        id=("extra_info.index",),
        strip_head=DAPO_HEAD,
        strip_tail=DAPO_TAIL,
        is_repeated=True,
    ),
    "deepscaler": Spec(
        "train", "agentica-org/DeepScaleR-Preview-Dataset", "deepscaler", split="train", keep=("solution",)
    ),
    "gsm8k-train": Spec(
        "train", "openai/gsm8k", "gsm8k_train", config="main", split="train", answer_after="####", keep=("answer",)
    ),
    "mawps-multiarith": Spec("train", None, "mawps_multiarith", **_MAWPS),
    "mawps-singleop": Spec("train", None, "mawps_singleop", **_MAWPS),
    "aime24": Spec("test", "HuggingFaceH4/aime_2024", "aime24", split="train", keep=("solution", "year")),
    "aime25": Spec("test", "math-ai/aime25", "aime25", strip_tail=BOXED),
    "amc23": Spec("test", "math-ai/amc23", "amc23", keep=("url",)),
    "math500": Spec("test", "HuggingFaceH4/MATH-500", "math500", keep=("solution", "subject", "level")),
    "olympiadbench": Spec(
        "test",
        "Hothan/OlympiadBench",
        "olympiadbench",
        config="OE_TO_maths_en_COMP",
        split="train",
        label=("final_answer",),
        keep=("subfield", "answer_type", "unit", "is_multiple_answer", "error"),
        context="context",
    ),
    "minerva": Spec("test", "math-ai/minervamath", "minerva", has_python=True),
    "gsm8k": Spec("test", "openai/gsm8k", "gsm8k_test", config="main", answer_after="####", keep=("answer",)),
    "mawps-addsub": Spec("test", None, "mawps_addsub", **_MAWPS),
}
