/** A titled box of the page. The downloads of its drawings and small tables are one menu in the title line. */
import type { ComponentChildren } from "preact";
import { useCallback, useId, useState } from "preact/hooks";
import { SlotContext, type Register, type Download } from "./export/slot";
import { DownloadMenu } from "./export/DownloadMenu";

interface CardProps {
  title: ComponentChildren;
  /** What stands at the right end of the title line. */
  actions?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
  testId?: string;
}

export function Card({ title, actions, children, testId, ...rest }: CardProps) {
  const id = useId();
  const [offered, setOffered] = useState<(() => Download)[]>([]);
  const register = useCallback<Register>((download) => {
    setOffered((before) => [...before, download]);
    return () => setOffered((before) => before.filter((one) => one !== download));
  }, []);
  return (
    <section class={`card ${rest.class ?? ""}`} aria-labelledby={id} data-testid={testId}>
      <header class="card-head">
        <h2 id={id}>{title}</h2>
        {actions && <div class="card-actions">{actions}</div>}
        {offered.length > 0 && <DownloadMenu downloads={() => offered.map((download) => download())} />}
      </header>
      <SlotContext.Provider value={register}>{children}</SlotContext.Provider>
    </section>
  );
}
