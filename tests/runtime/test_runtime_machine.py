"""Random small plans, random histories: what holds in every one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from decided_plans import decided, facts_of
from halting import HALTING, Halting
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from random_plans import plans

from eop.protocol.model import ANY, UNITS, Phase, Plan
from eop.runtime import saved
from eop.runtime.due import asked, due, opens
from eop.runtime.events import GENESIS, Event
from eop.runtime.frontier import enabled, frontier
from eop.runtime.node import Instance
from eop.runtime.reduce import Refused, branch_names, reduce
from eop.runtime.state import OPEN, State

# What may happen next; what is named more often happens more often.
MOVES = ["go_well", "work", "leave", "leave", "follow", "answer", "open_branches", "die", "force"]
MOVES += HALTING
OUTCOMES = [*["completed"] * 6, "failed", "timed_out", "blocked"]


class Histories(Halting):
    """Plays a run by events alone; ``states`` keeps the state after each."""

    @initialize(plan=plans() | plans().flatmap(decided), patience=st.integers(1, 2))
    def start(self, plan: Plan, patience: int) -> None:
        self.plan = plan
        variables = dict.fromkeys(plan.variables, patience)
        self.events: list[Event] = []
        self.states: list[State] = []
        self.append(
            "run_started",
            run="r",
            plan=plan.digest,
            config="c",
            snapshot="s",
            variables=variables,
        )

    @property
    def state(self) -> State:
        return self.states[-1]

    def append(self, kind: str, **data: Any) -> None:
        before = self.states[-1] if self.states else None
        prev = self.events[-1].digest if self.events else GENESIS
        event = Event(len(self.events) + 1, kind, data, prev, "t", "h")
        self.states.append(reduce(self.plan, before, event))
        assert not (before and before.halt and kind in ("node_entered", "node_skipped"))
        self.events.append(event)

    def refuses(self, kind: str, **data: Any) -> bool:
        try:
            self.append(kind, **data)
        except Refused:
            return True
        return False

    def open_nodes(self) -> list[str]:
        return [key for key, node in self.state.nodes.items() if node.status == OPEN]

    def asking(self) -> list[Instance]:
        gates = [Instance.parse(k) for k, g in self.state.gates.items() if g.status == "requested"]
        return [gate for gate in gates if self.state.is_current(gate)]

    def reserve(self, name: str) -> dict[str, float]:
        return self.plan.phase(name).reservation._asdict()

    @rule(move=st.sampled_from(MOVES), data=st.data())
    def move(self, move: str, data: st.DataObject) -> None:
        getattr(self, move)(data)

    def go_well(self, data: st.DataObject) -> None:
        """Some turns of the run in which everything succeeds, so that histories get far.

        Side by side, or the furthest branch first, so that one is done before others begin.
        """
        side_by_side = data.draw(st.booleans())
        for _ in range(data.draw(st.integers(1, 6))):
            self.follow(data)
            if head := opens(self.plan, self.state):
                self.opens_so_many(head.fan_out.max if head.fan_out else 0)
            elif self.asking():
                self.answer(data)
            elif self.open_nodes():
                self.leaves(data, self.open_nodes()[0], "completed", 0, 0)
            else:
                nodes = self.possible()
                for node in nodes if side_by_side else nodes[-1:]:
                    self.tries(node)

    def follow(self, data: st.DataObject) -> None:
        """Record what is due, as far as it goes without jobs and people."""
        while found := due(self.plan, self.state):
            self.append(found[0], **found[1])

    def open_branches(self, data: st.DataObject) -> None:
        if opens(self.plan, self.state):
            self.opens_so_many(data.draw(st.integers(0, 3)))

    def opens_so_many(self, count: int) -> None:
        head = opens(self.plan, self.state)
        assert head is not None
        assert head.fan_out is not None
        listed = self.state.artifact(self.plan, head.fan_out.artifact, self.state.iteration)
        assert listed is not None
        opened = {
            "iteration": self.state.iteration,
            "item": head.fan_out.item,
            "branches": dict.fromkeys(branch_names(count), "title"),
            "artifact": listed.sha256,
        }
        assert self.refuses("branches_opened", **opened) == (count > head.fan_out.max)

    def possible(self) -> list[Instance]:
        """Nodes of the frontier that a job could enter or skip now."""
        nodes = [n for n in frontier(self.plan, self.state).instances if self.is_phase(n)]
        kinds = {"run", "skip", "budget"}
        return [n for n in nodes if enabled(self.plan, self.state, n).kind in kinds]

    def work(self, data: st.DataObject) -> None:
        """What a job does: try a node of the frontier."""
        nodes = [n for n in frontier(self.plan, self.state).instances if self.is_phase(n)]
        if nodes:
            self.tries(data.draw(st.sampled_from(nodes)))

    def tries(self, node: Instance) -> None:
        verdict = enabled(self.plan, self.state, node)
        known = self.state.node(node)
        attempt = known.attempt + 1 if known else 1
        entry = {"node": node.key, "attempt": attempt, "reserve": self.reserve(node.step)}
        before = self.state
        assert self.refuses("node_entered", **entry) == (verdict.kind != "run")
        if verdict.kind == "run":
            self.joins_had_enough(before, node)
        if verdict.kind in ("skip", "budget"):
            self.append("node_skipped", node=node.key, reason=verdict.reason)

    def joins_had_enough(self, before: State, node: Instance) -> None:
        """What was entered after ``before``: a join that may fire, or a branch not cut off."""
        entered = self.plan.phase(node.step)
        if entered.join:
            item = self.plan.phase(entered.join.of).branch
            assert len(self.whole(before, item)) >= entered.join.at_least
        for phase in self.plan.phases:
            join = phase.join
            cuts = join and join.wait == ANY and self.plan.phase(join.of).branch == entered.branch
            if join and cuts:
                assert len(self.whole(before, entered.branch)) < join.at_least

    def whole(self, state: State, item: str | None) -> list[str]:
        """An independent reading: branches in which all has left, and all good phases well."""
        found = []
        for name in state.branches[state.iteration, str(item)]:
            ends = [
                (phase, state.node(state.current(phase.id, state.iteration, name)))
                for phase in self.plan.members(str(item))
            ]
            if all(
                node is not None
                and node.final
                and (node.status == "completed" or phase.optional or "failed" in phase.on_branch)
                for phase, node in ends
            ):
                found.append(name)
        return found

    def is_phase(self, instance: Instance) -> bool:
        return isinstance(self.plan.steps[instance.step], Phase)

    def force(self, data: st.DataObject) -> None:
        """Somebody starts a script by hand: he gets in only where the run would let him."""
        name = data.draw(st.sampled_from([phase.id for phase in self.plan.phases]))
        branch = data.draw(st.sampled_from([None, "p01", "p02", "p03"]))
        iteration, revision, attempt = (data.draw(st.integers(1, 3)) for _ in range(3))
        node = Instance(iteration, name, branch, revision)
        entry = {"node": node.key, "attempt": attempt, "reserve": self.reserve(name)}
        before = self.state
        if not self.refuses("node_entered", **entry):
            self.joins_had_enough(before, node)
            assert node.key not in {k for k, n in before.nodes.items() if n.final}
            assert all(self.is_done(before, node, need) for need in self.plan.requirements(name))

    def is_done(self, state: State, node: Instance, need: str) -> bool:
        """An independent, weaker reading of the rules: what is needed has happened."""
        home = node.iteration if node.iteration == 1 or need in self.plan.body else 1
        revision = state.revisions.get((home, need), 1)
        if need in {gate.id for gate in self.plan.gates}:
            return state.gates[Instance(home, need, None, revision).key].status == "approved"
        if self.plan.phase(need).branch is None:
            known = state.nodes[Instance(home, need, None, revision).key]
            optional = self.plan.phase(need).optional
            return known.final and (optional or known.status == "completed")
        item = self.plan.phase(need).branch
        branches = [node.branch] if node.branch else list(state.branches[home, item])
        return all(state.nodes[Instance(home, need, b, revision).key].final for b in branches)

    def leave(self, data: st.DataObject) -> None:
        if not self.open_nodes():
            return
        end = data.draw(st.sampled_from(OUTCOMES))
        key = data.draw(st.sampled_from(self.open_nodes()))
        reserve = self.state.nodes[key].reserve
        actions = data.draw(st.one_of(st.none(), st.integers(0, reserve.actions)))
        more = {
            unit: data.draw(st.integers(0, getattr(reserve, unit)))
            for unit in data.draw(st.sets(st.sampled_from(["tokens", "micro_usd"])))
        }
        wall_s = data.draw(st.integers(0, int(reserve.wall_s)))
        self.leaves(data, key, end, actions, wall_s, **more)

    def leaves(
        self,
        data: st.DataObject,
        key: str,
        end: str,
        actions: int | None,
        wall_s: int,
        **more: int,
    ) -> None:
        phase = self.plan.phase(Instance.parse(key).step)
        found = [
            {"name": o.name, "path": f"runs/{key}/{o.file}", "sha256": f"{len(self.events):064x}"}
            for o in phase.outputs
        ]
        self.append(
            "node_left",
            node=key,
            attempt=self.state.nodes[key].attempt,
            outcome=end,
            reason="",
            artifacts=[{**artifact, "size": 1} for artifact in found],
            facts=facts_of(self.plan, phase, data) if end == "completed" else {},
            usage={"actions": actions, "wall_s": wall_s, **more},
        )

    def die(self, data: st.DataObject) -> None:
        if not self.open_nodes():
            return
        key = data.draw(st.sampled_from(self.open_nodes()))
        attempt = self.state.nodes[key].attempt
        self.append("node_abandoned", node=key, attempt=attempt, reason="killed")

    def answer(self, data: st.DataObject) -> None:
        if self.state.ended or not self.asking():
            return
        status = data.draw(st.sampled_from(["approved", "rejected"]))
        gate = data.draw(st.sampled_from(self.asking()))
        wrong = {"gate": gate.key, "digest": "0" * 16, "by": "a", "reason": ""}
        assert self.refuses(f"gate_{status}", **wrong)
        right = {**wrong, "digest": asked(self.plan, self.state, gate)}
        self.append(f"gate_{status}", **right)

    @invariant()
    def nothing_is_past_a_closed_gate(self) -> None:
        for key, node in self.state.nodes.items():
            instance = Instance.parse(key)
            if node.attempt == 0 or not self.state.is_current(instance):
                continue
            for gate in self.plan.gates:
                if instance.step in self.plan.descendants(gate.id):
                    asked_in = self.state.current(gate.id, instance.iteration)
                    assert self.state.gates[asked_in.key].status == "approved"

    @invariant()
    def budgets_are_never_overdrawn(self) -> None:
        used = self.state.spent + self.state.reserved
        held = [self.state.nodes[key].reserve for key in self.open_nodes()]
        for unit in UNITS.values():
            limit = getattr(self.plan.budget, unit)
            assert limit is None or getattr(used, unit) <= limit
            assert getattr(self.state.reserved, unit) == sum(getattr(a, unit) for a in held)

    @invariant()
    def everything_is_bounded(self) -> None:
        assert self.state.iteration <= (self.plan.loop.max if self.plan.loop else 1)
        for (_, item), branches in self.state.branches.items():
            assert len(branches) <= self.plan.fan_out(item).max
        sent_back = sum(gate.on_reject.max for gate in self.plan.gates)
        backs = [phase.back for phase in self.plan.phases if phase.back]
        assert all(count <= backs[0].max for count in self.state.sent_back.values())
        sent_back += sum(back.max for back in backs)
        assert all(count <= 1 + sent_back for count in self.state.revisions.values())
        for key, node in self.state.nodes.items():
            attempts = self.plan.phase(Instance.parse(key).step).budget.attempts
            assert node.failures <= attempts

    @invariant()
    def a_saved_state_comes_back(self) -> None:
        again = saved.decode(saved.encode(self.state))
        assert again == self.state
        assert list(again.nodes.items()) == list(self.state.nodes.items())
        assert list(again.gates.items()) == list(self.state.gates.items())

    @invariant()
    def a_guard_lets_in_only_when_it_is_true(self) -> None:
        for key, node in self.state.nodes.items():
            instance = Instance.parse(key)
            when = self.plan.phase(instance.step).when
            if when in ("made.ok", "not made.ok") and node.attempt:
                made = self.state.nodes[replace(instance, step="make").key]
                assert made.facts["made.ok"] == (when == "made.ok")

    @invariant()
    def what_a_guard_holds_back_fails_no_run(self) -> None:
        if self.state.ended == "failed":
            finals = [n for n in self.state.nodes.values() if n.final and not n.excused]
            assert any(not node.completed for node in finals)

    @invariant()
    def the_run_is_never_stuck(self) -> None:
        """Until its end, there is a job to do, an event that is due, or a person to ask."""
        state = self.state
        if state.ended or state.halt or self.open_nodes() or self.asking():
            return
        assert self.possible() or due(self.plan, state) or opens(self.plan, state)

    def teardown(self) -> None:
        """Any prefix, folded anew, is the state that was there."""
        state = None
        for event, expected in zip(
            getattr(self, "events", []), getattr(self, "states", []), strict=True
        ):
            state = reduce(self.plan, state, Event.from_json(event.to_json()))
            assert state == expected


Histories.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestHistories = Histories.TestCase
