"""Command-line tools that write small models and data sets to disk."""
