"""The two pictures that `dvc plots` draws of a leaderboard, as Vega-Lite for DVC's templates.

DVC's own linear template would join the epochs of all seeds of a file into one line, and knows no
interval.
"""

from __future__ import annotations

from typing import Any

CURVES = "eop-curves"
SCORES = "eop-scores"

# No $schema: a browser's console would warn of another version than the one that draws.
_COMMON = {
    "data": {"values": "<DVC_METRIC_DATA>"},
    "title": "<DVC_METRIC_TITLE>",
    "width": 520,
}
_ENTRY = "split(datum.filename, '/')[length(split(datum.filename, '/')) - 2]"
_COLOURS = {
    "field": "standing",
    "type": "nominal",
    "scale": {"scheme": "category10"},
    "legend": {"orient": "bottom", "title": None, "columns": 5},
}
_ROW = {
    "y": {"field": "entry", "type": "nominal", "sort": None, "title": None},
    "yOffset": {"field": "rev", "type": "nominal"},
    "color": _COLOURS,
}

# By name of the template: the file is .dvc/plots/<name>.json.
TEMPLATES: dict[str, dict[str, Any]] = {
    CURVES: {
        **_COMMON,
        "height": 320,
        "transform": [{"calculate": _ENTRY, "as": "entry"}],
        "mark": {"type": "line", "tooltip": {"content": "data"}},
        "encoding": {
            "x": {"field": "<DVC_METRIC_X>", "type": "quantitative", "title": "epoch"},
            "y": {
                "field": "<DVC_METRIC_Y>",
                "type": "quantitative",
                "title": "training loss",
                "scale": {"zero": False},
            },
            "color": {
                "field": "entry",
                "type": "nominal",
                "legend": {"orient": "bottom", "title": None, "columns": 2, "labelLimit": 260},
            },
            "strokeDash": {"field": "rev", "type": "nominal", "title": "revision"},
            "detail": {"field": "seed"},
        },
    },
    SCORES: {
        **_COMMON,
        "height": {"step": 18},
        "encoding": _ROW,
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": {
                        "field": "low",
                        "type": "quantitative",
                        "title": "NDCG@10, 95 % interval",
                    },
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 60,
                    "tooltip": {"content": "data"},
                },
                "encoding": {
                    "x": {
                        "field": "<DVC_METRIC_X>",
                        "type": "quantitative",
                        "scale": {"zero": False},
                    },
                    "shape": {"field": "rev", "type": "nominal", "title": "revision"},
                },
            },
        ],
    },
}
