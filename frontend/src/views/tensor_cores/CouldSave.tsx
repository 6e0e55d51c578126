/** Kernel time that could be saved: an estimate as it is, a bound as "at most", both in turn, or "unknown". */
import { Sum } from "../../components/Value";

interface CouldSaveProps {
  estimate: number | null;
  atMost: number | null;
}

export function CouldSave({ estimate, atMost }: CouldSaveProps) {
  if (atMost === null) return <Sum value={estimate} unit="ns" />;
  return (
    <>
      {estimate !== null && (
        <>
          <Sum value={estimate} unit="ns" /> and{" "}
        </>
      )}
      <span class="at-most">
        at most <Sum value={atMost} unit="ns" />
      </span>
    </>
  );
}
