"""What a correct kernel must give: references, replays, wrong outputs.

A caller imports the module that it needs: the process of a user's oracle loads formulas alone.
"""
