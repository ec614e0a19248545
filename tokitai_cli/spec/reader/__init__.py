"""A spec file, strictly read: YAML to structs, and every rule that a spec must fulfil."""
