/** The state in, the page it names out: asks for the page's data and hands it to the page. */
import type { ComponentChildren } from "preact";
import { profileQuery } from "../api/queries";
import type { RunEntry } from "../api/types";
import { useResource, type Resource } from "../api/useResource";
import { GrowingContext, useWhole, type WholeResource } from "../api/useWhole";
import { BackToSteps } from "../components/KeyNodePicker";
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
import { FIRST_REPORT, ReportsPage } from "../views/reports/ReportsPage";
import { RooflinePage } from "../views/roofline/RooflinePage";
import { RunsPage } from "../views/runs/RunsPage";
import { TimelinePage } from "../views/timeline/TimelinePage";
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
    case "timeline":
      return <TimelineView />;
    case "tensor_cores":
      return <TensorCoresView />;
    case "roofline":
      return <RooflineView />;
    case "memory":
      return <MemoryView />;
    case "advice":
      return <AdviceView entries={entries} />;
    case "reports":
      return <ReportsView />;
    case "compare":
      return <CompareView entries={entries} />;
    case "runs":
      return <RunsPage />;
  }
}

/**
 * What every page but Compare asks with, and the key under which old data may stay while new data loads: that of another cycle or
 * rank of the run does, marked as busy, so that going through them does not flash.
 */
function useSelection() {
  const { profile, range } = useView().state;
  return { query: profileQuery(profile, range), key: String(profile.run) };
}

/** Another run may lack the key node that the address names. */
function ProfileResource<T>(props: { resource: Resource<T> | WholeResource<T>; children: (data: T) => ComponentChildren }) {
  return (
    <GrowingContext.Provider value={"growing" in props.resource && props.resource.growing}>
      <ResourceView {...props} remedy={<BackToSteps />} />
    </GrowingContext.Provider>
  );
}

function OverviewView() {
  const { query, key } = useSelection();
  return <ProfileResource resource={useResource("overview", query, key)}>{(data) => <OverviewPage data={data} />}</ProfileResource>;
}

function AdviceView({ entries }: { entries: RunEntry[] }) {
  const { query, key } = useSelection();
  const aside = namesSetAside(useView().state);
  const resource = useResource("advice", { ...query, set_aside: aside.join(",") || null }, key);
  return <ProfileResource resource={resource}>{(data) => <AdvicePage data={data} entries={entries} />}</ProfileResource>;
}

function OpsView() {
  const { query, key } = useSelection();
  const resource = useWhole("ops", query, key);
  return <ProfileResource resource={resource}>{(data) => <OpsPage data={data} />}</ProfileResource>;
}

function ModulesView() {
  const { query, key } = useSelection();
  const resource = useWhole("modules", query, key);
  return <ProfileResource resource={resource}>{(data) => <ModulesPage data={data} />}</ProfileResource>;
}

function KernelsView() {
  const { query, key } = useSelection();
  const resource = useWhole("kernels", query, key);
  return <ProfileResource resource={resource}>{(data) => <KernelsPage data={data} />}</ProfileResource>;
}

function LaunchesView() {
  const { query, key } = useSelection();
  const resource = useResource("launches", query, key);
  return <ProfileResource resource={resource}>{(data) => <LaunchesPage data={data} />}</ProfileResource>;
}

function TimelineView() {
  const { query, key } = useSelection();
  const { iteration } = useView().state;
  const resource = useResource("timeline", { ...query, iteration }, key);
  return <ProfileResource resource={resource}>{(data) => <TimelinePage data={data} />}</ProfileResource>;
}

function TensorCoresView() {
  const { query, key } = useSelection();
  const resource = useWhole("tensor_cores", query, key);
  return <ProfileResource resource={resource}>{(data) => <TensorCoresPage data={data} />}</ProfileResource>;
}

function RooflineView() {
  const { query, key } = useSelection();
  const resource = useResource("roofline", query, key);
  return <ProfileResource resource={resource}>{(data) => <RooflinePage data={data} />}</ProfileResource>;
}

function MemoryView() {
  const { query, key } = useSelection();
  const { device } = useView().state;
  const resource = useResource("memory", { ...query, device }, key);
  return <ProfileResource resource={resource}>{(data) => <MemoryPage data={data} />}</ProfileResource>;
}

function ReportsView() {
  const { query, key } = useSelection();
  const name = useView().state.report ?? FIRST_REPORT;
  const resource = useWhole("report", { ...query, name }, key);
  return <ProfileResource resource={resource}>{(data) => <ReportsPage data={data} />}</ProfileResource>;
}
