"""The static checks: references, shape of a phase, control flow, branches, artifacts, budgets."""
