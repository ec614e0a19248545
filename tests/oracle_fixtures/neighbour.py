values = None
