"""The only composer of the stages. A caller imports the module that it needs, and waits for no other."""
