/**
 * The module that TensorBoard imports (it calls `render()` once, inside the plugin's iframe). It stays tiny because its name
 * carries no content hash; everything else lies in hashed chunks that a proxy may cache without end.
 */
export async function render(): Promise<void> {
  let mount: typeof import("./shell/mount").mount;
  try {
    ({ mount } = await import("./shell/mount"));
  } catch (error) {
    // The chunks of a version that was installed after this TensorBoard was started are not served by it.
    document.body.textContent = `The page of tb_dlprof_plugin could not be loaded. Restart the server, then reload. (${String(error)})`;
    return;
  }
  // The routes are siblings of this file, whatever prefix TensorBoard or a notebook's proxy serves it under.
  mount(document.body, new URL(/* @vite-ignore */ "./", import.meta.url));
}
