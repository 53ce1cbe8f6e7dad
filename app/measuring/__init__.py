"""The dashboard served, measured and photographed."""
