"""The language: parse Markdown protocols, check them, give a plan.

``compiler`` has ``load`` and ``check``, ``diagnostics`` shows what they find, ``coverage`` says how
every marker is held, ``model`` is the plan. Jobs of a run need the plan alone, so nothing is
imported here.
"""
