"""Evidence of others: checked, judged and run again, compared, signed. Nothing of it is executed."""
