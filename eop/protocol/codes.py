"""Every code that ``check`` can report, with its meaning. The codes are stable: never reuse one."""

from __future__ import annotations

from types import MappingProxyType

CODES = MappingProxyType(
    {
        # syntax
        "EOP101": "the file cannot be read",
        "EOP102": "the file is not UTF-8 text",
        "EOP103": "the file is empty",
        "EOP104": "a character that has no place in a protocol",
        "EOP105": "front matter is missing or not closed",
        "EOP106": "a fence is not closed",
        "EOP107": "a tab in the indentation of YAML",
        "EOP108": "malformed YAML",
        "EOP109": "a key is given twice",
        "EOP110": "YAML anchors, aliases and tags are not part of the language",
        "EOP111": "a block is not a phase, a gate or a loop",
        "EOP112": "unknown key",
        "EOP113": "a required key is missing",
        "EOP114": "a block stands inside a list or a quotation",
        "EOP115": "the fence is almost an eop fence",
        "EOP116": "an agent phase has no prose",
        "EOP117": "the protocol has no phase",
        # references
        "EOP201": "unknown step",
        "EOP202": "two steps share a name",
        "EOP203": "unknown artifact",
        "EOP204": "unknown product",
        "EOP205": "unknown function",
        "EOP206": "unknown pattern",
        "EOP207": "the roles do not fit the pattern",
        "EOP208": "the artifact schema is missing or malformed",
        "EOP209": "unknown target",
        "EOP210": "no for_each opens branches of this name",
        "EOP211": "the step named is of the wrong kind",
        # types
        "EOP301": "a value of the wrong type",
        "EOP302": "a value outside the allowed words",
        "EOP303": "a number out of range",
        "EOP304": "a malformed name",
        "EOP305": "a malformed duration",
        "EOP306": "a language version that is not supported",
        "EOP307": "a malformed file name",
        "EOP308": "a default that is not of the variable's type",
        "EOP309": "an empty list or mapping",
        "EOP310": "an item is listed twice",
        # control flow
        "EOP401": "dependencies form a cycle",
        "EOP402": "a phase can run before the gate that guards its input",
        "EOP403": "a gate holds nothing back",
        "EOP404": "a step that goes back does not come after its destination",
        "EOP405": "more than one loop",
        "EOP406": "the next turn of the loop would not wait for a step",
        "EOP407": "a rejection would leave the loop",
        "EOP408": "more than one fan-out",
        "EOP409": "a branch phase does not come after the phase that opens the branches",
        "EOP410": "a step depends on a branch phase without a join",
        "EOP411": "a join that joins no branches",
        "EOP412": "no join waits for a branch phase",
        "EOP413": "a phase needs exactly one of pattern and function",
        "EOP414": "a marker that means nothing on this step",
        "EOP415": "a join that can never fire",
        "EOP416": "a function lacks what it works on",
        # budgets, tools, artifacts
        "EOP501": "a phase's budget does not fit into the run's",
        "EOP502": "a product cannot enforce a tool allow-list",
        "EOP503": "a patch without the tool that makes it",
        "EOP504": "a patch output that contradicts itself",
        "EOP505": "two outputs of a phase share a file",
        "EOP506": "an artifact has two producers",
        "EOP507": "an artifact is used before it is produced",
        "EOP508": "an artifact of a branch is used where there is no branch",
        "EOP509": "a fan-out over something that is not a list of items",
        "EOP510": "outputs that the function does not leave",
    }
)
