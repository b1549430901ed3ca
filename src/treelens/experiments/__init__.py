"""The paper's experiments, and ours beside them: protocol, runner, tables and figures."""
