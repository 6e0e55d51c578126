/**
 * The module that TensorBoard imports (it calls `render()` once, inside the plugin's iframe). It stays tiny because its name
 * carries no content hash; everything else lies in hashed chunks that a proxy may cache for ever.
 */
export async function render(): Promise<void> {
  const { mount } = await import("./shell/mount");
  // The routes are siblings of this file, whatever prefix TensorBoard or a notebook's proxy serves it under.
  mount(document.body, new URL(/* @vite-ignore */ "./", import.meta.url));
}
