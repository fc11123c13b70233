"""Does a budget rule teach more? GRPO on small language models, many seeds at a time."""
