/** A titled box of the page. What its drawings and small tables offer to take away is one menu in the title line. */
import type { ComponentChildren } from "preact";
import { useCallback, useId, useState } from "preact/hooks";
import { SlotContext, type Register, type Takeaway } from "./export/slot";
import { TakeawayMenu } from "./export/TakeawayMenu";

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
  const [offered, setOffered] = useState<(() => Takeaway)[]>([]);
  const register = useCallback<Register>((takeaway) => {
    setOffered((before) => [...before, takeaway]);
    return () => setOffered((before) => before.filter((one) => one !== takeaway));
  }, []);
  return (
    <section class={`card ${rest.class ?? ""}`} aria-labelledby={id} data-testid={testId}>
      <header class="card-head">
        <h2 id={id}>{title}</h2>
        {actions && <div class="card-actions">{actions}</div>}
        {offered.length > 0 && <TakeawayMenu takeaways={() => offered.map((takeaway) => takeaway())} />}
      </header>
      <SlotContext.Provider value={register}>{children}</SlotContext.Provider>
    </section>
  );
}
