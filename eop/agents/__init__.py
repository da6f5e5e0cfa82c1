"""Agent products as black-box work nodes: contract, workspace, jail, invocation, patch."""
