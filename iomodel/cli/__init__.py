"""Command line: arguments in, one table or one JSON object out."""
