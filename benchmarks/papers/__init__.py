"""Tables and figures of published papers, measured again."""
