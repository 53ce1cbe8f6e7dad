"""The operator's parts, one per file, named by their role in the paper's composition."""
