"""What the project costs to run: CPU seconds, tokens and users per CPU second, memory.

`python -m benchmarks` prints the tables; every measurement has a process of its own.
"""
