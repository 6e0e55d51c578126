/** The job against other runs: what changed from the first of them, and how the training scales where they have other sizes. */
import type { OtherJobsPage, RunEntry } from "../../api/types";
import { profileQuery } from "../../api/queries";
import { useFile, useResource } from "../../api/useResource";
import { NoteList } from "../../components/NoteList";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/table/DataTable";
import { ResourceView } from "../../features/ResourceView";
import { profileParam } from "../../state/sharedParams";
import { COLLECTIVES_CHANGED, DELAYS_CHANGED, PARTS_CHANGED, RANKS_CHANGED, SCALING } from "./otherJobColumns";
import { againstParam, changedCollectivesTable, changedRanksTable, MOST_JOBS } from "./params";

export function OtherJobs({ run, entries }: { run: string; entries: RunEntry[] }) {
  const inFile = useFile() !== null;
  const chosen = againstParam.value.filter((name) => name !== run);
  const others = [...new Set(entries.map((entry) => entry.run))].filter(
    (name) => name !== run && !chosen.includes(name),
  );
  const resource = useResource(
    "other_jobs",
    chosen.length > 0 && !inFile ? { ...profileQuery(profileParam.value, null), against: chosen.join("\n") } : null,
    run,
  );
  if (inFile || (others.length === 0 && chosen.length === 0)) return null;
  return (
    <Card
      title="Against other jobs"
      testId="job-others"
      actions={
        others.length > 0 &&
        chosen.length < MOST_JOBS && (
          <label class="picker">
            <span>{chosen.length === 0 ? "Compare with" : "Add"}</span>
            <select
              value=""
              data-testid="job-against"
              onChange={(event) => {
                const name = event.currentTarget.value;
                if (name) againstParam.value = [...chosen, name];
              }}
            >
              <option value="">a run…</option>
              {others.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )
      }
    >
      {chosen.length === 0 ? (
        <p class="muted small">
          Pick a run to see what changed from it. With runs on other numbers of GPUs, this shows how the training
          scales, too.
        </p>
      ) : (
        <>
          <p class="job-chosen">
            {chosen.map((name, index) => (
              <button
                key={name}
                type="button"
                class="chip"
                aria-label={`Leave out ${name}`}
                onClick={() => {
                  againstParam.value = chosen.filter((other) => other !== name);
                }}
              >
                {index === 0 ? `base: ${name}` : name} ✕
              </button>
            ))}
          </p>
          <ResourceView resource={resource}>{(data) => <Answer data={data} />}</ResourceView>
        </>
      )}
    </Card>
  );
}

function Answer({ data }: { data: OtherJobsPage }) {
  return (
    <div class="job-answer">
      {data.scaling.length > 0 && (
        <>
          <p data-testid="job-scaling-headline">{data.scaling_headline}</p>
          <DataTable
            name="scaling"
            testId="job-scaling"
            plain
            columns={SCALING}
            rows={data.scaling}
            rowId={(row) => row.job}
          />
        </>
      )}
      <p data-testid="job-compared-headline">{data.headline}</p>
      <DataTable
        name={`change from ${data.base}`}
        testId="job-parts"
        plain
        columns={PARTS_CHANGED}
        rows={data.parts}
        rowId={(row) => row.part}
      />
      {data.delays.length > 0 && (
        <DataTable
          name={`delays changed from ${data.base}`}
          plain
          columns={DELAYS_CHANGED}
          rows={data.delays}
          rowId={(row) => [row.what, row.rank, row.cause].join("|")}
        />
      )}
      <h3>Ranks</h3>
      <DataTable
        name={`ranks changed from ${data.base}`}
        options={changedRanksTable}
        columns={RANKS_CHANGED}
        rows={data.ranks}
        rowId={(row) => String(row.rank)}
      />
      {data.collectives.length > 0 && (
        <>
          <h3>Collectives</h3>
          <DataTable
            name={`collectives changed from ${data.base}`}
            options={changedCollectivesTable}
            columns={COLLECTIVES_CHANGED}
            rows={data.collectives}
            rowId={(row) => [row.operation, row.dimension, row.size, row.module].join("|")}
          />
        </>
      )}
      <NoteList notes={data.notes} />
    </div>
  );
}
