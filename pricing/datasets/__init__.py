"""Books of any number of rows: parts in, parts out, wherever they are computed."""
