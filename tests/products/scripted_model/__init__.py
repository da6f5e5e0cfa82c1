"""A model server that says what a script tells it to, in the three protocols of real products."""

from scripted_model.form import fit
from scripted_model.script import Asked, Call, Fault, Part, Say, Script, Tokens
from scripted_model.server import ScriptedModel, Seen

__all__ = [
    "Asked",
    "Call",
    "Fault",
    "Part",
    "Say",
    "Script",
    "ScriptedModel",
    "Seen",
    "Tokens",
    "fit",
]
