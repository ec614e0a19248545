"""Python that users write beside a spec: which files it is, and calls of it in processes of their own.

`child`, `functions` and `oracle` run in those processes and import of the tool nothing else but
`formula`, where an oracle is one. `calls` is the tool's side.
"""
