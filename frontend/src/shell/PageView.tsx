/** The state in, the page it names out: asks for the page's data and hands it to the page. */
import { profileQuery } from "../api/queries";
import type { RunEntry } from "../api/types";
import { useResource } from "../api/useResource";
import { ResourceView } from "../components/ResourceView";
import { useView } from "../state/store";
import { AdvicePage } from "../views/advice/AdvicePage";
import { namesSetAside } from "../views/advice/setAside";
import { CompareView } from "../views/compare/CompareView";
import { KernelsPage } from "../views/kernels/KernelsPage";
import { LaunchesPage } from "../views/launches/LaunchesPage";
import { MemoryPage } from "../views/memory/MemoryPage";
import { ModulesPage } from "../views/modules/ModulesPage";
import { OpsPage } from "../views/ops/OpsPage";
import { OverviewPage } from "../views/overview/OverviewPage";
import { RooflinePage } from "../views/roofline/RooflinePage";
import { RunsPage } from "../views/runs/RunsPage";
import { TensorCoresPage } from "../views/tensor_cores/TensorCoresPage";

export function PageView({ entries }: { entries: RunEntry[] }) {
  switch (useView().state.page) {
    case "overview":
      return <OverviewView />;
    case "ops":
      return <OpsView />;
    case "modules":
      return <ModulesView />;
    case "kernels":
      return <KernelsView />;
    case "launches":
      return <LaunchesView />;
    case "tensor_cores":
      return <TensorCoresView />;
    case "roofline":
      return <RooflineView />;
    case "memory":
      return <MemoryView />;
    case "advice":
      return <AdviceView entries={entries} />;
    case "compare":
      return <CompareView entries={entries} />;
    case "runs":
      return <RunsPage />;
  }
}

/** What every page but Compare asks with, and the key under which old data may stay while new data loads. */
function useSelection() {
  const { profile, range } = useView().state;
  return { query: profileQuery(profile, range), key: [profile.run, profile.session, profile.rank, profile.cycle].join(" ") };
}

function OverviewView() {
  const { query, key } = useSelection();
  return <ResourceView resource={useResource("overview", query, key)}>{(data) => <OverviewPage data={data} />}</ResourceView>;
}

function AdviceView({ entries }: { entries: RunEntry[] }) {
  const { query, key } = useSelection();
  const aside = namesSetAside(useView().state);
  const resource = useResource("advice", { ...query, set_aside: aside.join(",") || null }, key);
  return <ResourceView resource={resource}>{(data) => <AdvicePage data={data} entries={entries} />}</ResourceView>;
}

function OpsView() {
  const { query, key } = useSelection();
  const resource = useResource("ops", query, key);
  return <ResourceView resource={resource}>{(data) => <OpsPage data={data} />}</ResourceView>;
}

function ModulesView() {
  const { query, key } = useSelection();
  const resource = useResource("modules", query, key);
  return <ResourceView resource={resource}>{(data) => <ModulesPage data={data} />}</ResourceView>;
}

function KernelsView() {
  const { query, key } = useSelection();
  const resource = useResource("kernels", query, key);
  return <ResourceView resource={resource}>{(data) => <KernelsPage data={data} />}</ResourceView>;
}

function LaunchesView() {
  const { query, key } = useSelection();
  const resource = useResource("launches", query, key);
  return <ResourceView resource={resource}>{(data) => <LaunchesPage data={data} />}</ResourceView>;
}

function TensorCoresView() {
  const { query, key } = useSelection();
  const resource = useResource("tensor_cores", query, key);
  return <ResourceView resource={resource}>{(data) => <TensorCoresPage data={data} />}</ResourceView>;
}

function RooflineView() {
  const { query, key } = useSelection();
  const resource = useResource("roofline", query, key);
  return <ResourceView resource={resource}>{(data) => <RooflinePage data={data} />}</ResourceView>;
}

function MemoryView() {
  const { query, key } = useSelection();
  const { device } = useView().state;
  const resource = useResource("memory", { ...query, device }, key);
  return <ResourceView resource={resource}>{(data) => <MemoryPage data={data} />}</ResourceView>;
}
