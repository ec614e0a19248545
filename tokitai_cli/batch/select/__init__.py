"""What a batch consists of: its options, the specs that it finds, and their cases."""
