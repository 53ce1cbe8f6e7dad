"""The four command lines have one manner: help for every command, the same exit codes and flags."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import amo.__main__
import app.__main__
import data_gen.__main__
import pricing.__main__

ROOT = Path(__file__).parents[1]
MAINS = {
    "amo": amo.__main__,
    "app": app.__main__,
    "data_gen": data_gen.__main__,
    "pricing": pricing.__main__,
}


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)


@pytest.mark.parametrize("name", MAINS)
def test_every_command_explains_itself_and_every_flag_has_words(name: str) -> None:
    for parser in parsers(MAINS[name]._parser()):
        assert "usage:" in parser.format_help()
        for action in parser._actions:
            has_words = bool(action.help) or bool(action.choices) or action.dest == "help"
            assert has_words, f"{parser.prog} {action.dest}"


@pytest.mark.parametrize("name", MAINS)
def test_every_command_line_has_a_list(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert MAINS[name].main(["list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 3


@pytest.mark.parametrize("name", MAINS)
def test_bad_usage_ends_with_two(name: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        MAINS[name].main(["list", "--nonsense"])
    assert stopped.value.code == 2


@pytest.mark.parametrize("name", MAINS)
def test_json_means_the_same_everywhere(name: str) -> None:
    for parser in parsers(MAINS[name]._parser()):
        for action in parser._actions:
            if action.dest == "json":
                assert action.type is Path
                assert action.metavar == "FILE"
            if action.dest == "seed":
                assert action.metavar == "N"


def commands_of(text: str) -> list[str]:
    return re.findall(r"`((?:amo-pricing|python -m (?:amo|app|data_gen|pricing)) [^`…]+)`", text)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_commands_in_documents_are_understood(name: str) -> None:
    """Flags and verbs of every command that a document shows exist."""
    for command in commands_of((ROOT / name).read_text(encoding="utf-8")):
        words = command.replace("amo-pricing", "python -m pricing").split()[2:]
        main, arguments = MAINS[words[0]], words[1:]
        if "--help" in arguments or any(word.isupper() for word in arguments):
            continue
        if arguments[0] == "bench" and words[0] == "amo":
            arguments += ["--steps", "1"]  # of two flags one is needed
        if words[0] == "data_gen":
            arguments = main._with_verb(arguments)
        main._parser().parse_known_args(arguments)


def test_the_readme_s_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    command = next(c for c in commands_of(text) if c.startswith("amo-pricing price"))
    Path("book.csv").write_text(
        "S,K,T,r,q,sigma,type,style\n95,100,0.5,0.04,0.01,0.25,put,american\n"
    )
    assert pricing.__main__.main(command.split()[1:]) == 0
    assert Path("priced.csv").exists()
