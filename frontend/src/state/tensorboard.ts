/**
 * TensorBoard's own page around the iframe, whose address and theme this one shares. In a notebook the frame around can be
 * another site's, where every access throws, or the notebook itself, where `show()` puts this page into a
 * cell without TensorBoard around it and says so in the frame's address (`?alone`).
 */
export function tensorBoardWindow(): Window | null {
  try {
    if (window.parent === window || new URLSearchParams(window.location.search).has("alone")) return null;
    // Reading the document is what throws for another site.
    return window.parent.document ? window.parent : null;
  } catch {
    return null;
  }
}
