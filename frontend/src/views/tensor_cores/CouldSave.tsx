/** Kernel time that could be saved: an estimate as it is, a bound as "at most", both in turn, or "unknown". */
import { Value } from "../../components/Value";

interface CouldSaveProps {
  estimate: number | null;
  atMost: number | null;
}

export function CouldSave({ estimate, atMost }: CouldSaveProps) {
  if (atMost === null) return <Value value={estimate} unit="ns" />;
  return (
    <>
      {estimate !== null && (
        <>
          <Value value={estimate} unit="ns" /> and{" "}
        </>
      )}
      <span class="at-most">
        at most <Value value={atMost} unit="ns" />
      </span>
    </>
  );
}
