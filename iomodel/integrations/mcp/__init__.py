"""A server of the Model Context Protocol, which answers an agent's questions about a call."""
