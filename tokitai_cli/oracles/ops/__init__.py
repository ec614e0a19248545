"""The built-in oracles, a module for each op or part of one; each module that has any states ORACLES."""
