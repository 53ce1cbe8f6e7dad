"""For mkdocs: docstrings name code by Sphinx's roles, of which pages keep the name only."""

import re

_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):(?=<code>)")


def on_page_content(html: str, **_: object) -> str:
    """Return a page without the words of roles."""
    return _ROLE.sub("", html)
