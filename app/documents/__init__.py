"""Results files turned into Markdown, model cards and pictures."""
