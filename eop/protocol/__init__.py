"""The language: parse Markdown protocols, check them, give a plan."""

from eop.protocol.codes import CODES
from eop.protocol.compiler import check, load
from eop.protocol.coverage import Coverage, coverage
from eop.protocol.diagnostics import Diagnostic, ProtocolErrors, render
from eop.protocol.model import Plan
from eop.protocol.products import PRODUCTS

__all__ = [
    "CODES",
    "PRODUCTS",
    "Coverage",
    "Diagnostic",
    "Plan",
    "ProtocolErrors",
    "check",
    "coverage",
    "load",
    "render",
]
