"""Shows the DLProf page in a notebook's cell: starts TensorBoard for a log directory and displays an iframe.

`%tensorboard` shows TensorBoard around the page; `show` shows the page alone, from the same server. TensorBoard's own
page needs the browser's storage, which some browsers deny to views of another site, as in Colab: it stays empty there,
unlike this one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tb_dlprof_plugin.store.event_file import event_files
from tb_dlprof_plugin.store.tags import PLUGIN_NAME

_SECONDS_TO_ANSWER = 30
_SECONDS_TO_READ = 10
_ADDRESS = """
  const address = (server) => {
    const url = new URL(%(path)s, server.replace(/[/]?$/, "/"));
    const { dataset, classList } = document.body;
    const theme = dataset.jpThemeLight ? (dataset.jpThemeLight === "true" ? "light" : "dark")
      : document.documentElement.getAttribute("theme") ?? (classList.contains("vscode-dark") ? "dark" : null);
    if (theme) url.searchParams.set("theme", theme);
    return url;
  };
"""
"""The page at a server, in the theme of JupyterLab, Colab or VS Code if they set one."""
_IN_COLAB = f"""
(async () => {{{_ADDRESS}
  const frame = document.createElement("iframe");
  frame.src = address(await google.colab.kernel.proxyPort(%(port)d, {{ cache: true }}));
  frame.width = "100%%";
  frame.height = %(height)d;
  frame.style.border = "none";
  frame.allow = "clipboard-write";
  document.body.append(frame);
}})();
"""
_IN_JUPYTER = f"""
<iframe id="%(id)s" width="100%%" height="%(height)d" style="border: none" allow="clipboard-write"></iframe>
<script>
(() => {{{_ADDRESS}
  const server = new URL(%(server)s, window.location);
  if (%(port)d) server.port = %(port)d;
  document.getElementById("%(id)s").src = address(server.href);
}})();
</script>
"""


def show(logdir: str | os.PathLike[str], *, run: str | None = None, page: str | None = None, height: int = 900) -> None:
    """Shows the DLProf page of a log directory in this notebook's cell, without TensorBoard around it.

    Starts TensorBoard for the directory, or takes the one that runs for it already. In Jupyter the browser must reach
    TensorBoard's port on the notebook's host; behind a proxy, TENSORBOARD_PROXY_URL says where it is, as for
    `%tensorboard` ("/proxy/%PORT%/" with jupyter-server-proxy).

    Args:
        logdir: what `tensorboard --logdir` takes.
        run: the run to begin with, as TensorBoard names it; the first by default.
        page: the page to begin with: "overview", "ops", "compare" ...
        height: of the view, in pixels.

    Raises:
        RuntimeError: this is not a notebook, TensorBoard does not start, or one that was started before this package
            was installed runs already; one sentence that says what to do.
    """
    display = _display()
    port, path = _server(os.fspath(logdir)), page_path(run, page)
    if importlib.util.find_spec("google") and importlib.util.find_spec("google.colab"):
        display.display(display.Javascript(colab_script(port, path, height)))
    else:
        display.display(display.HTML(jupyter_html(port, path, height)))


def page_path(run: str | None, page: str | None) -> str:
    """Where a TensorBoard has the page by itself, relative to its root."""
    state = {"page": page, "run": run}
    pairs = "".join(f"&p.{PLUGIN_NAME}.{key}={quote(value)}" for key, value in state.items() if value is not None)
    # Marks the page as not inside TensorBoard's own frame: frontend/src/state/tensorboard.ts.
    return f"data/plugin_entry.html?name={PLUGIN_NAME}&alone=1#{PLUGIN_NAME}{pairs}"


def colab_script(port: int, path: str, height: int) -> str:
    """JavaScript for a cell of Colab."""
    return _IN_COLAB % {"path": _script(path), "port": port, "height": height}


def jupyter_html(port: int, path: str, height: int) -> str:
    """HTML for a cell of Jupyter: the port on the notebook's own host, or where TENSORBOARD_PROXY_URL says."""
    proxy = os.environ.get("TENSORBOARD_PROXY_URL")
    server = "/" if proxy is None else proxy.replace("%PORT%", str(port)).rstrip("/") + "/"
    shown = {"id": f"tb-dlprof-{secrets.token_hex(8)}", "port": port if proxy is None else 0, "height": height}
    return _IN_JUPYTER % {**shown, "server": _script(server), "path": _script(path)}


def _display() -> Any:
    """IPython's display functions, where there is a notebook to display in."""
    try:
        from IPython import display, get_ipython
    except ModuleNotFoundError:
        shell = None
    else:
        shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        raise RuntimeError(
            "show() shows a page in a notebook, and this is none; in a terminal run tensorboard --logdir DIR."
        )
    return display


def _server(logdir: str) -> int:
    """The port of a TensorBoard for the directory that knows this plugin and has begun to list the runs."""
    try:
        from tensorboard import manager
    except ModuleNotFoundError as error:
        if error.name != "tensorboard":
            raise
        raise RuntimeError(
            "show() starts TensorBoard, which is missing: pip install tensorboard; `tb-dlprof view` needs none."
        ) from None
    started = manager.start(["--logdir", logdir])
    if isinstance(started, manager.StartReused | manager.StartLaunched):
        info = started.info
        if PLUGIN_NAME not in _ask(info.port, "plugins_listing"):
            raise RuntimeError(
                f"the TensorBoard on port {info.port} was started before tb_dlprof_plugin was installed: "
                f"end it with !kill {info.pid}, then run this cell again."
            )
        if event_files(Path(logdir)):
            _wait_for_runs(info.port)
        return int(info.port)
    if isinstance(started, manager.StartFailed):
        said = (started.stderr or started.stdout or "").strip().splitlines()
        raise RuntimeError(f"TensorBoard ended at once: {said[-1] if said else f'exit status {started.exit_code}'}")
    if isinstance(started, manager.StartExecFailed):
        raise RuntimeError("the program tensorboard was not found: put it on PATH, or name it in TENSORBOARD_BINARY.")
    raise RuntimeError(f"TensorBoard (pid {started.pid}) has not started within a minute; run this cell again.")


def _wait_for_runs(port: int) -> None:
    """Wait until TensorBoard has read a first run, so that the page does not begin empty, up to a limit."""
    until = time.monotonic() + _SECONDS_TO_READ
    while time.monotonic() < until and not _ask(port, f"plugin/{PLUGIN_NAME}/runs").get("runs"):
        time.sleep(0.2)


def _ask(port: int, route: str) -> Any:
    """The JSON that a route of the server on this machine answers."""
    try:
        # A proxy for external addresses must not be used for this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://localhost:{port}/data/{route}", timeout=_SECONDS_TO_ANSWER) as answer:
            return json.load(answer)
    except (OSError, ValueError) as error:
        known = Path(tempfile.gettempdir()) / ".tensorboard-info"
        raise RuntimeError(
            f"the TensorBoard on port {port} does not answer ({error}); if it has ended, remove {known} and run this "
            "cell again."
        ) from None


def _script(text: str) -> str:
    """A text as a literal in a script of a page."""
    return json.dumps(text).replace("<", "\\u003c")
