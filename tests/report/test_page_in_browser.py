"""The page as people use it, in a headless Chromium: clicks, filters, links, charts, a reader."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browsing import FLAGS, browser_path
from many_entries import thousand
from playwright.sync_api import Page, expect, sync_playwright
from reported_run import HOSTILE, reported

from eop.report import write_report
from eop.report.page import page as page_text

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(browser_path() is None, reason="no Chromium: apt-get install chromium"),
]
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESKTOP = {"viewport": {"width": 1280, "height": 900}}


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as player:
        running = player.chromium.launch(executable_path=browser_path(), args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    root = tmp_path_factory.mktemp("plain")
    reported(root)
    return write_report(root, "r1")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    reported(root, HOSTILE)
    return write_report(root, "r1")


@contextmanager
def opened(browser, path: Path | str, place: str = "", **device):
    """A page that may say nothing on the console, throw nothing and open no dialog."""
    context = browser.new_context(**(device or DESKTOP))
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    address = path.as_uri() if isinstance(path, Path) else path
    page.goto(address + place)
    yield page
    assert said == []
    context.close()


def draw_all(page: Page) -> None:
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        expect(plot).to_have_attribute("data-drawn", "")


def rows(page: Page) -> list[str]:
    shown = page.locator("tr[data-entry]:visible")
    return shown.evaluate_all("(found) => found.map((row) => row.dataset.entry)")


@pytest.mark.parametrize("which", ["plain", "hostile"])
def test_every_chart_is_drawn_and_the_console_stays_empty(browser, request, which):
    with opened(browser, request.getfixturevalue(which)) as page:
        draw_all(page)
        assert page.locator(".plot svg").count() == 4
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        for box in page.locator(".map .box").all():
            box.hover()


def test_charts_that_nobody_has_scrolled_to_are_drawn_for_a_print(browser, plain):
    with opened(browser, plain) as page:
        expect(page.locator(".plot[data-drawn]")).to_have_count(4)
        assert page.evaluate("scrollY") == 0
        page.set_viewport_size({"width": 700, "height": 900})
        page.emulate_media(media="print")
        wide = page.locator(".plot svg").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().width)"
        )
        assert all(0 < width <= 700 for width in wide)


def test_a_tooltip_shows_hostile_words_as_words(browser, hostile):
    with opened(browser, hostile) as page:
        draw_all(page)
        points = page.locator("[data-plot=scores] .mark-symbol path")
        for point in points.all():
            point.hover(force=True)
            page.wait_for_timeout(50)
            if "<script>" in (page.locator("#vg-tooltip-element").text_content() or ""):
                break
        else:
            pytest.fail("no tooltip has the hostile title")
        assert page.locator("#vg-tooltip-element script, #vg-tooltip-element img").count() == 0


def test_a_script_that_got_past_all_escaping_does_not_run(browser, plain, tmp_path):
    planted = (
        "<body><script>document.title = 'owned'</script>"
        "<img src='x' onerror=\"document.title = 'owned'\">"
        "<a id='bad' href=\"javascript:document.title = 'owned'\">x</a>"
    )
    page_file = tmp_path / "planted.html"
    page_file.write_text(plain.read_text().replace("<body>", planted, 1))
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(page_file.as_uri())
    page.locator("#bad").click()
    assert page.title() == "r1: RankEvolve"
    assert sum("Content Security Policy" in line for line in said) >= 3
    # Its own scripts run all the same.
    expect(page.locator("#theme")).to_be_visible()
    page.close()


def test_a_row_s_link_opens_its_entry_and_takes_the_keyboard_there(browser, plain):
    with opened(browser, plain) as page:
        page.locator("#row-r1-it01-p03 a").click()
        entry = page.locator("#r1-it01-p03")
        expect(entry).to_have_attribute("open", "")
        expect(entry.locator("summary").first).to_be_focused()
        expect(entry).to_be_in_viewport()
        assert page.url.endswith("#r1-it01-p03")
        entry.get_by_role("link", name="Back to its row").click()
        expect(page.locator("#row-r1-it01-p03")).to_be_in_viewport()


def test_search_and_filters_narrow_rows_and_sections_and_stay_in_the_address(browser, plain):
    with opened(browser, plain) as page:
        assert len(rows(page)) == 6
        page.get_by_label("Search").fill("deeper")
        assert rows(page) == ["r1-it01-p02"]
        expect(page.get_by_role("status")).to_have_text("1 of 6 entries")
        assert page.locator("details.entry:visible").count() == 1
        # What stands in a section is found, too: words of hypothesis and reason.
        page.get_by_label("Search").fill("SCORING function")
        assert rows(page) == ["r1-it01-p04"]
        page.get_by_role("button", name="Clear").click()
        expect(page.get_by_role("status")).to_have_text("6 of 6 entries")
        page.get_by_role("combobox", name="Standing").select_option("worse")
        assert rows(page) == ["r1-it01-p03"]
        address = page.url
        page.get_by_label("Search").fill("no such thing")
        assert rows(page) == []
    with opened(browser, address) as page:
        assert rows(page) == ["r1-it01-p03"]
        page.get_by_role("combobox", name="Standing").select_option("")
        page.get_by_role("combobox", name="Iteration").select_option("1")
        assert "r1-base" not in rows(page)


def test_columns_sort_either_way_and_what_was_not_measured_stays_last(browser, plain):
    with opened(browser, plain) as page:
        head = page.get_by_role("columnheader", name="NDCG@10")
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "descending")
        best = rows(page)
        assert best[0] == "r1-it01-p01"
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "ascending")
        worst = rows(page)
        assert worst[0] == "r1-popularity"
        assert worst[:4] == best[:4][::-1]
        assert set(worst[4:]) == {"r1-it01-p02", "r1-it01-p04"}
        page.get_by_role("button", name="entry", exact=True).click()
        assert rows(page)[0] == "r1-it01-p02", "A deeper net"


def test_a_deep_link_opens_what_it_leads_to_whatever_lies_round_it(browser, plain):
    with opened(browser, plain, "#r1-it01-p01") as page:
        expect(page.locator("#r1-it01-p01")).to_have_attribute("open", "")
        expect(page.locator("#r1-it01-p01")).to_be_in_viewport()
        expect(page.locator("#r1-it01-p01 .diff").first).to_be_visible()
    with opened(browser, plain, "#node-it01_p01_train_r2") as page:
        expect(page.locator("#node-it01_p01_train_r2")).to_be_in_viewport()
    with opened(browser, plain, "#?q=deeper") as page:
        expect(page.locator("#r1-base")).to_be_hidden()
        page.evaluate("location.hash = 'r1-base'")
        expect(page.locator("#r1-base")).to_be_visible()


def test_a_point_of_a_chart_leads_to_its_entry(browser, plain):
    with opened(browser, plain) as page:
        draw_all(page)
        page.locator("[data-plot=scores] .mark-symbol path").last.click(force=True)
        expect(page.locator("details.entry[open]")).to_have_count(1)


@pytest.mark.parametrize("device", [DESKTOP, DESKTOP | {"color_scheme": "dark"}, PHONE])
def test_nothing_hinders_a_screen_reader(browser, hostile, device):
    """No rule of axe-core (WCAG 2.2 A and AA, and good practice) finds a fault, all opened."""
    with opened(browser, hostile, **device) as page:
        draw_all(page)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found = Axe().run(page).response["violations"]
        told = [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found]
        assert told == []


def test_a_screen_reader_hears_the_table_on_a_phone_as_a_table(browser, plain):
    with opened(browser, plain, **PHONE) as page:
        heard = page.get_by_role("table", name="Leaderboard of toy").aria_snapshot()
        assert re.search(r'row "A wider net .*promoted', heard)
        assert "columnheader" in heard
        assert heard.count("cell") >= 6 * 4


def test_on_narrow_screens_nothing_sticks_out(browser, hostile):
    for width in (320, 390, 768):
        device = {"viewport": {"width": width, "height": 700}}
        with opened(browser, hostile, **device) as page:
            draw_all(page)
            page.evaluate(
                "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_is_the_system_s_choice_until_the_reader_makes_one(browser, plain):
    def paper(page: Page) -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    with opened(browser, plain) as page:
        light = paper(page)
    with opened(browser, plain, **DESKTOP, color_scheme="dark") as page:
        dark = paper(page)
        assert dark != light
        page.get_by_role("button", name="Light").click()
        assert paper(page) == light
        page.reload()
        assert paper(page) == light
        page.get_by_role("button", name="Dark").click()
        assert paper(page) == dark


def test_the_page_reads_without_scripts(browser, plain):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(plain.as_uri())
    assert page.locator("tr[data-entry]:visible").count() == 6
    page.locator("#r1-it01-p01 > summary").click()
    expect(page.locator("#r1-it01-p01 .diff").first).to_be_visible()
    expect(page.locator("form.filters")).to_be_hidden()
    context.close()


def test_the_keyboard_alone_gets_everywhere(browser, plain):
    with opened(browser, plain) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the leaderboard"
        page.keyboard.press("Enter")
        page.locator("#r1-it01-p01 > summary").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#r1-it01-p01")).to_have_attribute("open", "")


def test_what_a_box_of_the_entity_graph_is_linked_to_stands_out(browser, plain):
    with opened(browser, plain) as page:
        page.locator(".map .box.note").first.hover()
        assert page.locator(".map .edge.near").count() >= 1
        page.locator("h1").hover()
        assert page.locator(".map .edge.near, .map .edge.far").count() == 0


def test_a_thousand_entries_are_searched_sorted_and_shown_fifty_at_a_time(browser, tmp_path):
    path = tmp_path / "thousand.html"
    path.write_text(page_text(thousand(tmp_path)))
    with opened(browser, path) as page:
        expect(page.get_by_role("status")).to_have_text("1001 of 1001 entries")
        assert len(rows(page)) == 50
        page.get_by_role("button", name="Show 50 more of 1001").click()
        assert len(rows(page)) == 100
        page.get_by_label("Search").fill("idea 777")
        assert rows(page) == ["many-it78-p08"]
        page.get_by_label("Search").fill("")
        page.get_by_role("combobox", name="Standing").select_option("promoted")
        expect(page.get_by_role("status")).to_have_text("100 of 1001 entries")
        page.get_by_role("button", name="Clear").click()
        page.get_by_role("columnheader", name="NDCG@10").get_by_role("button").click()
        assert rows(page)[0] == "many-it100-p10"
        page.evaluate("location.hash = 'many-it50-p05'")
        expect(page.locator("#many-it50-p05")).to_have_attribute("open", "")
        expect(page.locator("#many-it50-p05")).to_be_in_viewport()
        draw_all(page)
