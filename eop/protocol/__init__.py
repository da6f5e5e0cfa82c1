"""The language: parse Markdown protocols, check them, give a plan."""
