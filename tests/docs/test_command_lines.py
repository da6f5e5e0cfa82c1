"""Every command line on a page, in a block or in a sentence, is one that its program takes."""

from __future__ import annotations

import pytest
from command_lines import in_blocks, in_prose, problems
from doc_pages import PAGES


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_have_these_options(page: str) -> None:
    wrong = [found for line in in_blocks(page) for found in problems(line, whole=True)]
    wrong += [found for line in in_prose(page) for found in problems(line, whole=False)]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("eop statsu", "there is no command 'statsu'"),
        ("eop gate shwo agree", "there is no command 'shwo'"),
        ("cd here && eop status --jsn", "No such option '--jsn'"),
        ("eop gate show", "lacks NAME"),
        ("eop graph --format png", "'png' is not one of 'mermaid', 'svg'"),
        ("eop verify now", "takes no 'now'"),
        ("hstu trian --seed 1", "there is no command 'trian'"),
        ("python -m hstu train --epochs 3", "No such option '--epochs'"),
        ("snakemake --cores 2 --profyl x", "unrecognized arguments: --profyl"),
        ("dvc repo -f", "repo"),
        ("dvc repro --run-cache", "--run-cache"),
        ("make tests", "there is no target 'tests'"),
        ('make bench ARGS="--pear x"', "No such option '--pear'"),
        ("torchrun --nproc-per-node 2 -m hstu train --devise cpu", "No such option '--devise'"),
        ("if true; then eop chek x; fi", "there is no command 'chek'"),
    ],
)
def test_a_wrong_one_is_found(line: str, problem: str) -> None:
    [found] = problems(line, whole=True)
    assert problem in found


def test_a_mention_needs_no_value() -> None:
    assert problems("eop gate show, approve", whole=False) == []
    assert problems("eop graph --run", whole=False) == []
