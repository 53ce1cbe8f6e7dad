"""Pages of the dashboard run without a browser: what tests of them share."""

from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

APP = Path(__file__).parents[1] / "app"


def run(view: str, /, **query: str) -> AppTest:
    app = AppTest.from_file(APP / "views" / f"{view}.py", default_timeout=120)
    for name, value in query.items():
        app.query_params[name] = value
    return checked(app.run())


def checked(app: AppTest) -> AppTest:
    assert not app.exception, [error.value for error in app.exception]
    return app


def field(app: AppTest, kind: str, label: str) -> Any:
    return next(widget for widget in getattr(app, kind) if widget.label == label)


def upload(view: str, data: bytes, name: str) -> AppTest:
    app = run(view)
    app.session_state[{"book": "book source", "market": "chain source"}[view]] = "upload"
    checked(app.run())
    app.file_uploader[0].upload(name, data)
    return checked(app.run())
