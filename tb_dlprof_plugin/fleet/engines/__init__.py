"""Where the work on many ranks runs: here, in processes of this machine, or on the user's Dask cluster.

An engine has one method, `Engine.map_unordered`. All give the same results for the same function and items.
"""

from tb_dlprof_plugin.fleet.engines.choice import engine_for
from tb_dlprof_plugin.fleet.engines.engine import Engine, EngineError, Failure

__all__ = ["Engine", "EngineError", "Failure", "engine_for"]
