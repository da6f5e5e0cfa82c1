"""RankEvolve's harness: protocols, runtime, agents, evidence."""
