/** A page whose code is loaded when it is first shown, or before. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

/** How the code of a page is loaded; pages that are not in it come with the first one. */
const LOADERS = new WeakMap<object, () => Promise<unknown>>();

export function lazyPage<Props extends object>(
  load: () => Promise<(props: Props) => JSX.Element>,
): (props: Props) => JSX.Element {
  let loaded: ((props: Props) => JSX.Element) | null = null;
  let loading: Promise<unknown> | null = null;
  const once = (): Promise<unknown> => {
    loading ??= load().then(
      (component) => {
        loaded = component;
      },
      (error: unknown) => {
        // The next attempt may reach the server again.
        loading = null;
        throw error;
      },
    );
    return loading;
  };

  function LazyPage(props: Props) {
    const [, setDrawn] = useState(false);
    const [error, setError] = useState<unknown>(null);
    useEffect(() => {
      let gone = false;
      // It may have come since the drawing.
      once().then(
        () => !gone && setDrawn(true),
        (reason: unknown) => !gone && setError(reason),
      );
      return () => {
        gone = true;
      };
    }, []);
    if (error !== null)
      // The chunks of a version that was installed after this server was started are not served by it.
      throw new Error(`Its code could not be loaded: restart the server, then reload (${String(error)}).`);
    const Page = loaded;
    return Page === null ? <div aria-busy="true" /> : <Page {...props} />;
  }
  LOADERS.set(LazyPage, once);
  return LazyPage;
}

/** Loads the code of a page, so that it is there once its data is. */
export async function loadPage(component: object): Promise<void> {
  await LOADERS.get(component)?.();
}
