"""A run's pages as a widget of notebooks: Jupyter, Colab, VS Code and marimo show it without a server.

Its package, anywidget, is an extra.
"""

from __future__ import annotations

import anywidget
import traitlets

_SHOW = """
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.title = "DLProf";
  frame.style.cssText = "width: 100%; border: none";
  const resize = () => { frame.style.height = `${model.get("height")}px`; };
  const show = () => { frame.srcdoc = model.get("html"); };
  resize();
  show();
  model.on("change:height", resize);
  model.on("change:html", show);
  el.append(frame);
}
export default { render };
"""


class RunWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """The pages of a run in a frame without an origin: they reach neither the notebook nor the network."""

    _esm = _SHOW
    html = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(900).tag(sync=True)
