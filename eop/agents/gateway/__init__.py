"""The metering gateway: a proxy per attempt that holds the key, counts, and refuses in time.

``sse``, ``asked``, ``told``, ``prices`` and ``meter`` are pure; ``ledger`` writes and reads files,
``server`` speaks HTTP, ``forwarder`` is a program of its own inside a jail. ``docs/agents.md``
says what is counted and when a call is refused.
"""
