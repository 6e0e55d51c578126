// Generated from the routes in tb_dlprof_plugin/web/routes.py by `make generate`. Do not edit.
// What each interface of api/types.ts holds where a test does not say: see filled.ts.
import type * as types from "../api/types";

export interface Shape {
  /** The values of fields that are no interfaces: nothing, zero, null, the first of several words. */
  readonly blank: Readonly<Record<string, unknown>>;
  /** The interfaces of other fields; where `blank` has null there may be none, where it has [] several. */
  readonly parts: Readonly<Record<string, keyof Interfaces>>;
}

export interface Interfaces {
  RunEntry: types.RunEntry;
  RunIndex: types.RunIndex;
  RunRef: types.RunRef;
  Slice: types.Slice;
  TrustReasonText: types.TrustReasonText;
  TrustVerdict: types.TrustVerdict;
  StepFigures: types.StepFigures;
  SelectedRange: types.SelectedRange;
  PrecisionRegion: types.PrecisionRegion;
  PrecisionSummary: types.PrecisionSummary;
  LossScalePoint: types.LossScalePoint;
  NumericHealthPanel: types.NumericHealthPanel;
  PerformanceSummary: types.PerformanceSummary;
  Category: types.Category;
  GpuUse: types.GpuUse;
  IterationBar: types.IterationBar;
  OpRow: types.OpRow;
  SystemItem: types.SystemItem;
  FindingLine: types.FindingLine;
  Coverage: types.Coverage;
  NoteItem: types.NoteItem;
  Overview: types.Overview;
  TextPart: types.TextPart;
  OpsPage: types.OpsPage;
  OpTypeRow: types.OpTypeRow;
  OpTypesPage: types.OpTypesPage;
  TreeOp: types.TreeOp;
  TreeKernel: types.TreeKernel;
  WorkTree: types.WorkTree;
  WorkTensorCores: types.WorkTensorCores;
  WorkRate: types.WorkRate;
  WorkLaunches: types.WorkLaunches;
  WorkMemory: types.WorkMemory;
  WorkSpot: types.WorkSpot;
  WorkOp: types.WorkOp;
  OpShapes: types.OpShapes;
  OpKernel: types.OpKernel;
  WorkIteration: types.WorkIteration;
  WorkDetail: types.WorkDetail;
  ModuleRow: types.ModuleRow;
  ModulesPage: types.ModulesPage;
  KernelScope: types.KernelScope;
  MeasuredCounters: types.MeasuredCounters;
  KernelOp: types.KernelOp;
  KernelRow: types.KernelRow;
  KernelsPage: types.KernelsPage;
  LaunchFigures: types.LaunchFigures;
  IdleActivity: types.IdleActivity;
  PaceRow: types.PaceRow;
  LaunchedKernel: types.LaunchedKernel;
  SyncRow: types.SyncRow;
  GapRow: types.GapRow;
  LaunchesPage: types.LaunchesPage;
  TimelineIteration: types.TimelineIteration;
  TimelineChoice: types.TimelineChoice;
  TimelineTrack: types.TimelineTrack;
  TimelineName: types.TimelineName;
  TimelineLane: types.TimelineLane;
  TimelineSegments: types.TimelineSegments;
  TimelineChunk: types.TimelineChunk;
  TimelineSpot: types.TimelineSpot;
  LongEvent: types.LongEvent;
  TimelinePage: types.TimelinePage;
  TimelineEventsPage: types.TimelineEventsPage;
  TimelineLaunch: types.TimelineLaunch;
  TimelineGpuWork: types.TimelineGpuWork;
  TimelineGap: types.TimelineGap;
  TimelineEvent: types.TimelineEvent;
  MatchLane: types.MatchLane;
  TimelineMatches: types.TimelineMatches;
  ReasonTotal: types.ReasonTotal;
  SavingItem: types.SavingItem;
  TensorCoreReason: types.TensorCoreReason;
  TensorCoreOp: types.TensorCoreOp;
  TensorCoreKernel: types.TensorCoreKernel;
  IneligibleWork: types.IneligibleWork;
  TensorCoresPage: types.TensorCoresPage;
  Roof: types.Roof;
  RooflineOp: types.RooflineOp;
  RooflinePage: types.RooflinePage;
  MemoryDevice: types.MemoryDevice;
  MemoryFigures: types.MemoryFigures;
  MemoryLimits: types.MemoryLimits;
  MemoryMoment: types.MemoryMoment;
  MemoryCategory: types.MemoryCategory;
  MemoryCurve: types.MemoryCurve;
  MemoryIteration: types.MemoryIteration;
  MemoryPart: types.MemoryPart;
  MemoryGroup: types.MemoryGroup;
  MemoryAllocation: types.MemoryAllocation;
  MemoryPage: types.MemoryPage;
  PlanRow: types.PlanRow;
  PlanFigure: types.PlanFigure;
  HeldRow: types.HeldRow;
  CheckpointRow: types.CheckpointRow;
  ShardRow: types.ShardRow;
  StageRow: types.StageRow;
  Depth: types.Depth;
  PlanPage: types.PlanPage;
  JobFigures: types.JobFigures;
  JobAccount: types.JobAccount;
  JobDelay: types.JobDelay;
  JobWhatIf: types.JobWhatIf;
  JobCollective: types.JobCollective;
  JobHeat: types.JobHeat;
  JobDimension: types.JobDimension;
  DistributedPage: types.DistributedPage;
  JobPart: types.JobPart;
  JobDelayChange: types.JobDelayChange;
  JobRankChange: types.JobRankChange;
  JobCollectiveChange: types.JobCollectiveChange;
  ScaledRow: types.ScaledRow;
  OtherJobsPage: types.OtherJobsPage;
  RankLine: types.RankLine;
  RankLinesPage: types.RankLinesPage;
  EnergyChoice: types.EnergyChoice;
  EnergyLimit: types.EnergyLimit;
  EnergyPart: types.EnergyPart;
  EnergyModule: types.EnergyModule;
  EnergyOp: types.EnergyOp;
  EpochEnergy: types.EpochEnergy;
  EnergyPage: types.EnergyPage;
  KeyNodeCandidate: types.KeyNodeCandidate;
  KeyNodesPage: types.KeyNodesPage;
  SearchHit: types.SearchHit;
  SearchPage: types.SearchPage;
  Related: types.Related;
  ReportEntry: types.ReportEntry;
  ReportColumn: types.ReportColumn;
  ReportPage: types.ReportPage;
  Reading: types.Reading;
  EvidenceRow: types.EvidenceRow;
  Reference: types.Reference;
  Peer: types.Peer;
  FindingItem: types.FindingItem;
  CombinedSaving: types.CombinedSaving;
  RuleLine: types.RuleLine;
  ForecastOp: types.ForecastOp;
  ForecastPage: types.ForecastPage;
  MixedPrecisionChoice: types.MixedPrecisionChoice;
  MixedPrecision: types.MixedPrecision;
  AdvicePage: types.AdvicePage;
  TriedRow: types.TriedRow;
  NotTriedRow: types.NotTriedRow;
  TriedPage: types.TriedPage;
  TrustPage: types.TrustPage;
  CompareSide: types.CompareSide;
  CompareBatches: types.CompareBatches;
  CompareBoth: types.CompareBoth;
  CompareShares: types.CompareShares;
  CompareSharesOfBoth: types.CompareSharesOfBoth;
  CompareBucket: types.CompareBucket;
  CompareMetric: types.CompareMetric;
  CompareKernelFamily: types.CompareKernelFamily;
  CompareModule: types.CompareModule;
  CompareOp: types.CompareOp;
  ForecastCheckPart: types.ForecastCheckPart;
  ForecastCheckOp: types.ForecastCheckOp;
  ForecastCheckPanel: types.ForecastCheckPanel;
  RealisedSavingRow: types.RealisedSavingRow;
  PredictionCheck: types.PredictionCheck;
  ComparePage: types.ComparePage;
  RunAdvice: types.RunAdvice;
  RunRow: types.RunRow;
  FailedRun: types.FailedRun;
  ManyRunsPage: types.ManyRunsPage;
  ModelSide: types.ModelSide;
  ModelRow: types.ModelRow;
  ByModelPage: types.ByModelPage;
  SweepOption: types.SweepOption;
  SweepMark: types.SweepMark;
  SweepCurve: types.SweepCurve;
  SweepLeftOut: types.SweepLeftOut;
  SweepPage: types.SweepPage;
  CompareKernel: types.CompareKernel;
  CompareOpDetail: types.CompareOpDetail;
  TraceFile: types.TraceFile;
  PytorchTab: types.PytorchTab;
  TraceLinks: types.TraceLinks;
}

export const SHAPES: Readonly<Record<keyof Interfaces, Shape>> = {
  RunEntry: {
    blank: {
      run: "",
      session: "",
      rank: 0,
      cycles: [],
      model: null,
      precision: null,
      device: null,
      created_unix_ns: null,
      iterations: null,
      recorded_iteration_ns: null,
      world_size: null,
      unreadable: "",
    },
    parts: {
    },
  },
  RunIndex: {
    blank: {
      plugin_version: "",
      logdir: "",
      runs: [],
      offset: 0,
      total: 0,
      revision: "",
      import_command: "",
    },
    parts: {
      runs: "RunEntry",
    },
  },
  RunRef: {
    blank: {
      run: "",
      session: "",
      rank: 0,
      cycle: 0,
    },
    parts: {
    },
  },
  Slice: {
    blank: {
      key: "",
      label: "",
      value_ns: null,
      percent: null,
    },
    parts: {
    },
  },
  TrustReasonText: {
    blank: {
      code: "",
      severity: "fair",
      text: "",
    },
    parts: {
    },
  },
  TrustVerdict: {
    blank: {
      verdict: "fair",
      reasons: [],
    },
    parts: {
      reasons: "TrustReasonText",
    },
  },
  StepFigures: {
    blank: {
      ms: 0,
      low_ms: 0,
      high_ms: 0,
      source: "",
      recorded_ms: 0,
    },
    parts: {
    },
  },
  SelectedRange: {
    blank: {
      first: 0,
      last: 0,
      total: 0,
      first_number: 0,
      last_number: 0,
      found_by: "",
    },
    parts: {
    },
  },
  PrecisionRegion: {
    blank: {
      name: "",
      precision: "",
      time_ns: 0,
      percent: 0,
    },
    parts: {
    },
  },
  PrecisionSummary: {
    blank: {
      label: null,
      evidence: [],
      disagreements: [],
      shares: [],
      regions: [],
      regions_total: 0,
      loss_scaling: "no",
    },
    parts: {
      shares: "Slice",
      regions: "PrecisionRegion",
    },
  },
  LossScalePoint: {
    blank: {
      cycle: 0,
      step: null,
      scale: 0,
    },
    parts: {
    },
  },
  NumericHealthPanel: {
    blank: {
      headline: "",
      whole_recording: false,
      checked_steps: null,
      skipped_steps: null,
      skipped_iterations: [],
      loss_scale: null,
      steps_since_change: null,
      loss_scales: [],
    },
    parts: {
      loss_scales: "LossScalePoint",
    },
  },
  PerformanceSummary: {
    blank: {
      wall_clock_ns: 0,
      gpu_utilization_percent: null,
      tensor_core_kernel_utilization_percent: null,
      tensor_core_eligible_ns: null,
      tensor_core_time_percent: null,
      gpu_busy_ns: null,
      total_iterations: 0,
      aggregated_iterations: 0,
      start_iteration: 0,
      stop_iteration: 0,
      average_iteration_ns: 0,
      step_low_ns: 0,
      step_high_ns: 0,
      step_source: "light",
      recorded_iteration_ns: 0,
      recorded_wall_clock_ns: 0,
      recorder_ns: 0,
      iteration_deviation_ns: null,
      samples_per_second: null,
      threads: 0,
      peak_memory_bytes: null,
      memory_bytes: null,
      joules_per_step: null,
      watts: null,
    },
    parts: {
    },
  },
  Category: {
    blank: {
      key: "",
      label: "",
      definition: "",
      recorded: false,
    },
    parts: {
    },
  },
  GpuUse: {
    blank: {
      id: 0,
      name: null,
      utilization_percent: null,
      busy_ns: 0,
      tensor_core_percent: null,
      compute_capability: null,
      sm_count: null,
      memory_bytes: null,
      tensor_core_ns: 0,
    },
    parts: {
    },
  },
  IterationBar: {
    blank: {
      index: 0,
      last: 0,
      number: 0,
      last_number: 0,
      start_ns: 0,
      duration_ns: 0,
      shortest_ns: 0,
      longest_ns: 0,
      category_ns: [],
      selected: false,
    },
    parts: {
    },
  },
  OpRow: {
    blank: {
      id: "",
      name: "",
      role: "backward",
      gpu_ns: null,
      gpu_percent: null,
      calls: 0,
      tc_eligible: "no",
      using_tc: "no",
      kernel_calls: 0,
      precision: "",
      op_type: "",
      cpu_total_ns: null,
      cpu_self_ns: null,
      module: "",
      shapes: "",
      dtypes: "",
      direction: "",
    },
    parts: {
    },
  },
  SystemItem: {
    blank: {
      group: "",
      label: "",
      value: null,
    },
    parts: {
    },
  },
  FindingLine: {
    blank: {
      id: "",
      rule: "",
      severity: "",
      title: "",
      saving_ns: null,
      low_ns: null,
      high_ns: null,
      saving_percent: null,
    },
    parts: {
    },
  },
  Coverage: {
    blank: {
      total_ns: 0,
      linked_ns: 0,
      orphan_ns: 0,
      unattributed_ns: 0,
      outside_ns: 0,
      linked_percent: null,
    },
    parts: {
    },
  },
  NoteItem: {
    blank: {
      code: "",
      text: "",
      count: null,
    },
    parts: {
    },
  },
  Overview: {
    blank: {
      title: "",
      headline: "",
      account: [],
      step_words: "",
      has_gpu: false,
      numeric_health: null,
      categories: [],
      gpu_utilization: [],
      gpus: [],
      resource_usage: [],
      parts: [],
      kernel_time: [],
      tensor_core_efficiency: [],
      buckets: [],
      iterations: [],
      bars_note: "",
      top_ops: [],
      system: [],
      findings: [],
      notes: [],
    },
    parts: {
      ref: "RunRef",
      account: "Slice",
      trust: "TrustVerdict",
      step: "StepFigures",
      range: "SelectedRange",
      precision: "PrecisionSummary",
      numeric_health: "NumericHealthPanel",
      summary: "PerformanceSummary",
      categories: "Category",
      gpu_utilization: "Slice",
      gpus: "GpuUse",
      resource_usage: "Slice",
      parts: "Slice",
      kernel_time: "Slice",
      tensor_core_efficiency: "Slice",
      buckets: "Category",
      iterations: "IterationBar",
      top_ops: "OpRow",
      system: "SystemItem",
      findings: "FindingLine",
      coverage: "Coverage",
      notes: "NoteItem",
    },
  },
  TextPart: {
    blank: {
      text: "",
      kind: "",
      id: "",
    },
    parts: {
    },
  },
  OpsPage: {
    blank: {
      headline: "",
      headline_parts: [],
      has_gpu: false,
      rows: [],
      total_rows: 0,
    },
    parts: {
      ref: "RunRef",
      headline_parts: "TextPart",
      range: "SelectedRange",
      rows: "OpRow",
      coverage: "Coverage",
    },
  },
  OpTypeRow: {
    blank: {
      op_type: "",
      gpu_ns: null,
      percent: null,
      forward_ns: 0,
      backward_ns: 0,
      ops: 0,
      calls: 0,
      tc_eligible: "no",
      eligible_ns: null,
      tc_ns: null,
      utilization_percent: null,
      kernel_calls: 0,
      cpu_self_ns: null,
      cpu_total_ns: null,
      rest_ns: 0,
    },
    parts: {
    },
  },
  OpTypesPage: {
    blank: {
      headline: "",
      headline_parts: [],
      has_gpu: false,
      by_type: [],
      rows: [],
      total_rows: 0,
    },
    parts: {
      ref: "RunRef",
      headline_parts: "TextPart",
      range: "SelectedRange",
      by_type: "Slice",
      rows: "OpTypeRow",
      coverage: "Coverage",
    },
  },
  TreeOp: {
    blank: {
      id: "",
      name: "",
      module: "",
      op_type: "",
      direction: "",
      tc_eligible: "no",
      time_ns: 0,
      kernels: [],
      kernel_ns: [],
    },
    parts: {
    },
  },
  TreeKernel: {
    blank: {
      id: "",
      short_name: "",
      tensor_core: "no",
    },
    parts: {
    },
  },
  WorkTree: {
    blank: {
      has_gpu: false,
      ops: [],
      total_ops: 0,
      kernels: [],
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      ops: "TreeOp",
      kernels: "TreeKernel",
    },
  },
  WorkTensorCores: {
    blank: {
      eligible: "no",
      using: "no",
      eligible_ns: null,
      tc_ns: null,
      utilization_percent: null,
      reason: "",
    },
    parts: {
    },
  },
  WorkRate: {
    blank: {
      flops_per_second: null,
      ceiling_flops_per_second: null,
      percent_of_ceiling: null,
      bound: "compute",
      roof: "",
    },
    parts: {
    },
  },
  WorkLaunches: {
    blank: {
      launches: 0,
      timed: 0,
      mean_delay_ns: null,
      max_delay_ns: null,
      waits: 0,
      waited_ns: 0,
    },
    parts: {
    },
  },
  WorkMemory: {
    blank: {
      device: "",
      bytes: 0,
      percent: null,
      allocations: 0,
    },
    parts: {
    },
  },
  WorkSpot: {
    blank: {
      index: 0,
      number: 0,
      event: "",
      name: "",
      duration_ns: 0,
    },
    parts: {
    },
  },
  WorkOp: {
    blank: {
      id: "",
      name: "",
      time_ns: 0,
      percent: null,
      direction: "",
    },
    parts: {
    },
  },
  OpShapes: {
    blank: {
      shapes: "",
      dtypes: "",
      calls: 0,
      gpu_ns: null,
      cpu_total_ns: 0,
    },
    parts: {
    },
  },
  OpKernel: {
    blank: {
      id: "",
      name: "",
      total_ns: 0,
      percent: null,
      tensor_core: "no",
      precision: "",
      average_ns: 0,
      calls: 0,
      family: "",
      bytes: null,
      short_name: "",
      rule: "",
    },
    parts: {
    },
  },
  WorkIteration: {
    blank: {
      index: 0,
      last: 0,
      number: 0,
      last_number: 0,
      calls: 0,
      cpu_total_ns: null,
      gpu_ns: null,
      shortest_ns: 0,
      longest_ns: 0,
    },
    parts: {
    },
  },
  WorkDetail: {
    blank: {
      kind: "kernel",
      id: "",
      name: "",
      has_gpu: false,
      row: null,
      eligibility_reason: "",
      tensor_cores: null,
      rate: null,
      memory: null,
      longest: null,
      ops: [],
      total_ops: 0,
      shapes: [],
      total_shapes: 0,
      kernels: [],
      total_kernels: 0,
      iterations: [],
      bars_note: "",
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      row: "OpRow",
      tensor_cores: "WorkTensorCores",
      rate: "WorkRate",
      launches: "WorkLaunches",
      memory: "WorkMemory",
      longest: "WorkSpot",
      ops: "WorkOp",
      shapes: "OpShapes",
      kernels: "OpKernel",
      iterations: "WorkIteration",
    },
  },
  ModuleRow: {
    blank: {
      path: "",
      type: "",
      gpu_ns: null,
      gpu_percent: null,
      gpu_forward_ns: null,
      gpu_backward_ns: null,
      gpu_own_ns: null,
      calls: null,
      eligible_ns: null,
      tc_ns: null,
      utilization_percent: null,
      tc_eligible_ops: null,
      tc_using_ops: null,
      kernel_calls: null,
      cpu_ns: 0,
      cpu_percent: null,
      cpu_forward_ns: null,
      cpu_backward_ns: null,
      cpu_own_ns: 0,
      gpu_min_ns: null,
      gpu_max_ns: null,
      gpu_sum_ns: null,
      cpu_min_ns: 0,
      cpu_max_ns: 0,
      op_calls: 0,
      ops: 0,
      order: 0,
      role: null,
      children: 0,
      calls_per_iteration: null,
      gpu_average_ns: null,
      cpu_average_ns: 0,
    },
    parts: {
    },
  },
  ModulesPage: {
    blank: {
      headline: "",
      headline_parts: [],
      has_gpu: false,
      model: "",
      from_stacks: false,
      remedy: "",
      rows: [],
      outside: [],
      total_rows: 0,
    },
    parts: {
      ref: "RunRef",
      headline_parts: "TextPart",
      range: "SelectedRange",
      rows: "ModuleRow",
      outside: "ModuleRow",
      coverage: "Coverage",
    },
  },
  KernelScope: {
    blank: {
      kind: "module",
      id: "",
      name: "",
    },
    parts: {
    },
  },
  MeasuredCounters: {
    blank: {
      launches: 0,
      dram_bytes: null,
      flops: null,
      tensor_instructions: null,
    },
    parts: {
    },
  },
  KernelOp: {
    blank: {
      id: "",
      name: "",
      total_ns: 0,
    },
    parts: {
    },
  },
  KernelRow: {
    blank: {
      id: "",
      name: "",
      total_ns: 0,
      percent: null,
      calls: 0,
      average_ns: 0,
      tensor_core: "no",
      precision: "",
      family: "",
      occupancy_percent: null,
      min_ns: 0,
      max_ns: 0,
      kind: "",
      grid: "",
      block: "",
      registers_per_thread: null,
      shared_memory_bytes: null,
      bytes: null,
      rule: "",
      short_name: "",
      told_by: "",
      occupancy_measured: false,
      counters: null,
      ops: [],
    },
    parts: {
      counters: "MeasuredCounters",
      ops: "KernelOp",
    },
  },
  KernelsPage: {
    blank: {
      scope: null,
      headline: "",
      headline_parts: [],
      has_gpu: false,
      by_family: [],
      rows: [],
      total_rows: 0,
    },
    parts: {
      ref: "RunRef",
      scope: "KernelScope",
      headline_parts: "TextPart",
      range: "SelectedRange",
      by_family: "Slice",
      rows: "KernelRow",
      coverage: "Coverage",
    },
  },
  LaunchFigures: {
    blank: {
      idle_percent: null,
      slack_percent: null,
      launches: 0,
      timed: 0,
      median_delay_ns: null,
      mean_delay_ns: null,
      max_delay_ns: null,
      mean_queue: null,
      max_queue: null,
      short_percent: null,
      started_early: 0,
      clock_disagrees: 0,
      sync_calls_per_iteration: 0,
      sync_ns_per_iteration: 0,
    },
    parts: {
    },
  },
  IdleActivity: {
    blank: {
      key: "",
      cause: "cpu_launch",
      label: "",
      value_ns: 0,
      percent: null,
    },
    parts: {
    },
  },
  PaceRow: {
    blank: {
      number: 0,
      gpu: 0,
      pace: "cpu",
      duration_ns: 0,
      idle_percent: null,
      late_percent: null,
      slack_percent: null,
      gaps: 0,
      longest_gap_ns: 0,
      idle_by_cause_ns: [],
      index: 0,
      busy_ns: 0,
      idle_ns: 0,
    },
    parts: {
    },
  },
  LaunchedKernel: {
    blank: {
      id: "",
      name: "",
      mean_delay_ns: null,
      max_delay_ns: null,
      mean_queue: null,
      max_queue: null,
      calls: 0,
      mean_call_ns: null,
      average_ns: 0,
      short_percent: null,
      kind: "",
      short_name: "",
    },
    parts: {
    },
  },
  SyncRow: {
    blank: {
      call: "",
      op: "",
      time_ns: 0,
      percent: null,
      calls: 0,
      average_ns: 0,
      max_ns: 0,
      kind: "copy",
      role: "backward",
      inner_op: "",
      op_id: "",
      module: "",
      calls_per_iteration: 0,
      ns_per_iteration: 0,
    },
    parts: {
    },
  },
  GapRow: {
    blank: {
      kernel: "",
      duration_ns: 0,
      percent: null,
      number: 0,
      gpu: 0,
      start_ns: 0,
      cause: "cpu_launch",
      kind: "host_wait",
      op: "",
      index: 0,
      cause_ns: [],
      kernel_id: "",
      op_id: "",
      module: "",
      event: "",
    },
    parts: {
    },
  },
  LaunchesPage: {
    blank: {
      headline: "",
      headline_parts: [],
      step_words: "",
      has_gpu: false,
      gpus: [],
      bar_categories: [],
      causes: [],
      idle_by_cause: [],
      idle_by_activity: [],
      idle_by_kind: [],
      gap_kinds: [],
      bars: [],
      bars_note: "",
      iterations: [],
      total_iterations: 0,
      kernels: [],
      total_kernels: 0,
      syncs: [],
      total_syncs: 0,
      gaps: [],
      total_gaps: 0,
    },
    parts: {
      ref: "RunRef",
      headline_parts: "TextPart",
      step: "StepFigures",
      range: "SelectedRange",
      figures: "LaunchFigures",
      bar_categories: "Category",
      idle_by_cause: "Slice",
      idle_by_activity: "IdleActivity",
      idle_by_kind: "Slice",
      gap_kinds: "Category",
      bars: "IterationBar",
      iterations: "PaceRow",
      kernels: "LaunchedKernel",
      syncs: "SyncRow",
      gaps: "GapRow",
    },
  },
  TimelineIteration: {
    blank: {
      index: 0,
      number: 0,
      duration_ns: 0,
      start_ns: 0,
      stop_ns: 0,
      host_start_ns: 0,
      host_stop_ns: 0,
    },
    parts: {
    },
  },
  TimelineChoice: {
    blank: {
      index: 0,
      number: 0,
      duration_ns: 0,
    },
    parts: {
    },
  },
  TimelineTrack: {
    blank: {
      key: "",
      kind: "idle",
      source: "",
      label: "",
      detail: "",
      gpu: null,
      levels: 0,
    },
    parts: {
    },
  },
  TimelineName: {
    blank: {
      index: 0,
      label: "",
      kind: "annotation",
      other: false,
    },
    parts: {
    },
  },
  TimelineLane: {
    blank: {
      track: 0,
      level: 0,
      id: [],
      start: [],
      duration: [],
      name: [],
    },
    parts: {
    },
  },
  TimelineSegments: {
    blank: {
      track: 0,
      level: 0,
      start: [],
      length: [],
      kind: [],
      cover: [],
    },
    parts: {
    },
  },
  TimelineChunk: {
    blank: {
      start_ns: 0,
      stop_ns: 0,
      events: 0,
    },
    parts: {
    },
  },
  TimelineSpot: {
    blank: {
      id: "",
      track: 0,
      level: 0,
      label: "",
      kind: "annotation",
      start_ns: 0,
      duration_ns: 0,
    },
    parts: {
    },
  },
  LongEvent: {
    blank: {
      op: "",
      module: "",
      percent: null,
    },
    parts: {
      spot: "TimelineSpot",
    },
  },
  TimelinePage: {
    blank: {
      headline: "",
      iterations: [],
      window_ns: 0,
      has_gpu: false,
      events: 0,
      deeper: 0,
      parts: [],
      tracks: [],
      names: [],
      lanes: [],
      kinds: [],
      bins: 0,
      segments: [],
      chunks: [],
      longest_gaps: [],
      longest_gpu: [],
      longest_ops: [],
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      iteration: "TimelineIteration",
      iterations: "TimelineChoice",
      parts: "Slice",
      tracks: "TimelineTrack",
      names: "TimelineName",
      lanes: "TimelineLane",
      segments: "TimelineSegments",
      chunks: "TimelineChunk",
      longest_gaps: "LongEvent",
      longest_gpu: "LongEvent",
      longest_ops: "LongEvent",
    },
  },
  TimelineEventsPage: {
    blank: {
      chunk: 0,
      names: [],
      lanes: [],
    },
    parts: {
      names: "TimelineName",
      lanes: "TimelineLane",
    },
  },
  TimelineLaunch: {
    blank: {
      call: null,
      call_ns: null,
      delay_ns: null,
      queue: null,
      early: false,
      clock_disagrees: false,
    },
    parts: {
      call: "TimelineSpot",
    },
  },
  TimelineGpuWork: {
    blank: {
      kernel_id: "",
      kind: "",
      tensor_core: "no",
      precision: "",
      grid: "",
      block: "",
      registers_per_thread: null,
      shared_memory_bytes: null,
      occupancy_percent: null,
      bytes: null,
      bytes_per_second: null,
    },
    parts: {
      launch: "TimelineLaunch",
    },
  },
  TimelineGap: {
    blank: {
      causes: [],
      activities: [],
      definitions: {},
      launched: "",
      ended_by: null,
    },
    parts: {
      causes: "Slice",
      activities: "IdleActivity",
      ended_by: "TimelineSpot",
    },
  },
  TimelineEvent: {
    blank: {
      name: "",
      track: "",
      iteration: null,
      previous: null,
      next: null,
      inside: null,
      around: [],
      op: "",
      op_id: "",
      module: "",
      role: "backward",
      shapes: "",
      dtypes: "",
      self_ns: null,
      launched: [],
      launched_total: 0,
      launched_ns: 0,
      gpu: null,
      gap: null,
    },
    parts: {
      ref: "RunRef",
      spot: "TimelineSpot",
      previous: "TimelineSpot",
      next: "TimelineSpot",
      inside: "TimelineSpot",
      around: "TimelineSpot",
      launched: "TimelineSpot",
      gpu: "TimelineGpuWork",
      gap: "TimelineGap",
    },
  },
  MatchLane: {
    blank: {
      track: 0,
      level: [],
      id: [],
      start: [],
      duration: [],
    },
    parts: {
    },
  },
  TimelineMatches: {
    blank: {
      count: 0,
      shown: 0,
      on_gpu: 0,
      gpu_ns: 0,
      first: null,
      lanes: [],
    },
    parts: {
      first: "TimelineSpot",
      lanes: "MatchLane",
    },
  },
  ReasonTotal: {
    blank: {
      id: "alignment",
      label: "",
      remark: false,
      ops: 0,
      time_ns: 0,
      percent: null,
      saved_ns: null,
      at_most_ns: null,
      text: "",
    },
    parts: {
    },
  },
  SavingItem: {
    blank: {
      low_ns: 0,
      expected_ns: 0,
      high_ns: 0,
      percent: 0,
      derivation: "",
      low_joules: null,
      high_joules: null,
    },
    parts: {
    },
  },
  TensorCoreReason: {
    blank: {
      id: "alignment",
      label: "",
      text: "",
      time_ns: 0,
      shapes: "",
      saved_ns: null,
      saved_low_ns: null,
      saved_high_ns: null,
      at_most_ns: null,
    },
    parts: {
    },
  },
  TensorCoreOp: {
    blank: {
      id: "",
      name: "",
      direction: "",
      gpu_ns: 0,
      could_save_ns: null,
      using_tc: "no",
      utilization_percent: null,
      precision: "",
      reasons: [],
      reason: "",
      possible_precisions: [],
      could_save: "at most",
      tc_ns: 0,
      non_tc_ns: 0,
      unknown_ns: 0,
      calls: 0,
      op_type: "",
      shapes: "",
      dtypes: "",
      tc_kernels: [],
      non_tc_kernels: [],
      unknown_kernels: [],
      module: "",
      layout_ns: 0,
      helpers_ns: 0,
      saved_ns: null,
      at_most_ns: null,
    },
    parts: {
      reasons: "TensorCoreReason",
    },
  },
  TensorCoreKernel: {
    blank: {
      id: "",
      name: "",
      total_ns: 0,
      percent: null,
      calls: 0,
      tensor_core: "no",
      precision: "",
      family: "",
      measured_percent: null,
      rule: "",
    },
    parts: {
    },
  },
  IneligibleWork: {
    blank: {
      id: "alignment",
      op_type: "",
      ops: 0,
      time_ns: 0,
      text: "",
      label: "",
    },
    parts: {
    },
  },
  TensorCoresPage: {
    blank: {
      headline: "",
      has_gpu: false,
      supported_precisions: [],
      utilization_percent: null,
      eligible_ns: null,
      using_ns: null,
      not_using_ns: null,
      unknown_ns: null,
      by_precision: [],
      by_reason: [],
      saving: null,
      measured: [],
      ops: [],
      total_rows: 0,
      kernels: [],
      ineligible: [],
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      by_precision: "Slice",
      by_reason: "ReasonTotal",
      saving: "SavingItem",
      ops: "TensorCoreOp",
      kernels: "TensorCoreKernel",
      ineligible: "IneligibleWork",
    },
  },
  Roof: {
    blank: {
      precision: "",
      tensor_cores: false,
      label: "",
      flops_per_second: 0,
      reached: false,
    },
    parts: {
    },
  },
  RooflineOp: {
    blank: {
      id: "",
      name: "",
      direction: "",
      gpu_ns: 0,
      percent_of_ceiling: null,
      flops_per_second: null,
      ceiling_flops_per_second: null,
      precision: "",
      bound: "compute",
      measured: false,
      possible_precision: "",
      percent_of_possible: null,
      flops: null,
      bytes: null,
      flops_per_byte: null,
      calls: 0,
      op_type: "",
      shapes: "",
      dtypes: "",
      module: "",
      tensor_cores: "no",
      why_above_roof: "",
    },
    parts: {
    },
  },
  RooflinePage: {
    blank: {
      headline: "",
      has_gpu: false,
      gpu: "",
      source: "",
      bytes_per_second: null,
      roofs: [],
      calls: 0,
      unknown_calls: 0,
      flops: null,
      flops_per_iteration: null,
      flops_per_second: null,
      matrix_ns: null,
      unknown_ns: null,
      unknown_percent: null,
      percent_of_ceiling: null,
      ops: [],
      total_rows: 0,
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      roofs: "Roof",
      ops: "RooflineOp",
    },
  },
  MemoryDevice: {
    blank: {
      key: "",
      label: "",
    },
    parts: {
    },
  },
  MemoryFigures: {
    blank: {
      peak_allocated_bytes: 0,
      peak_allocated_percent: null,
      peak_reserved_bytes: null,
      peak_reserved_percent: null,
      fragmentation_bytes: null,
      fragmentation_percent: null,
      device_memory_bytes: null,
      growth_bytes: 0,
      grows: false,
      relative: false,
      known_before_bytes: 0,
    },
    parts: {
    },
  },
  MemoryLimits: {
    blank: {
      smallest_limit_bytes: null,
      without_retries_bytes: null,
      given_back_bytes: null,
      holes_bytes: null,
      largest_hole_bytes: null,
      outside_bytes: null,
      unknown: "",
    },
    parts: {
    },
  },
  MemoryMoment: {
    blank: {
      time_ns: 0,
      step_time_ns: 0,
      iteration_number: 0,
      op: "",
      op_id: null,
      direction: "",
      allocated_bytes: 0,
    },
    parts: {
    },
  },
  MemoryCategory: {
    blank: {
      key: "activation_gradients",
      label: "",
      definition: "",
      bytes: null,
      percent: null,
      own_peak_bytes: null,
    },
    parts: {
    },
  },
  MemoryCurve: {
    blank: {
      time_ns: [],
      allocated: [],
      reserved: [],
      categories: [],
      stop_ns: 0,
      moments: 0,
    },
    parts: {
    },
  },
  MemoryIteration: {
    blank: {
      number: 0,
      peak_allocated_bytes: 0,
      peak_reserved_bytes: null,
      growth_bytes: 0,
      allocations: 0,
      index: 0,
      start_ns: 0,
      category_bytes: [],
    },
    parts: {
    },
  },
  MemoryPart: {
    blank: {
      module: "",
      category: "activation_gradients",
      bytes: 0,
    },
    parts: {
    },
  },
  MemoryGroup: {
    blank: {
      kind: "before",
      name: "",
      direction: "",
      bytes: 0,
      percent: null,
      allocations: null,
      own_peak_bytes: 0,
    },
    parts: {
    },
  },
  MemoryAllocation: {
    blank: {
      id: 0,
      op: "",
      bytes: 0,
      percent: null,
      direction: "",
      category: "activation_gradients",
      iteration: null,
      freed: "",
      lifetime_ns: null,
      module: "",
      op_id: null,
    },
    parts: {
    },
  },
  MemoryPage: {
    blank: {
      headline: "",
      how_to_record: "",
      devices: [],
      device: null,
      figures: null,
      limits: null,
      peak: null,
      peak_parts: [],
      categories: [],
      curve: null,
      iterations: [],
      not_attributed: "",
      parts: [],
      modules: [],
      op_types: [],
      rows: [],
      total_rows: null,
      notes: [],
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      devices: "MemoryDevice",
      figures: "MemoryFigures",
      limits: "MemoryLimits",
      peak: "MemoryMoment",
      peak_parts: "TextPart",
      categories: "MemoryCategory",
      curve: "MemoryCurve",
      iterations: "MemoryIteration",
      parts: "MemoryPart",
      modules: "MemoryGroup",
      op_types: "MemoryGroup",
      rows: "MemoryAllocation",
    },
  },
  PlanRow: {
    blank: {
      gpu: "",
      batch_size: null,
      peak_allocated_mb: null,
      peak_reserved_mb: null,
      smallest_limit_mb: null,
      capacity_mb: null,
      verdict: "",
      largest_batch: null,
      step_ms: null,
      samples_per_second: null,
    },
    parts: {
    },
  },
  PlanFigure: {
    blank: {
      name: "",
      mb: 0,
      low_mb: 0,
      high_mb: 0,
      source: "",
    },
    parts: {
    },
  },
  HeldRow: {
    blank: {
      kind: "",
      mb: 0,
    },
    parts: {
    },
  },
  CheckpointRow: {
    blank: {
      modules: [],
      peak_allocated_mb: 0,
      peak_reserved_mb: 0,
      step_ms: null,
    },
    parts: {
    },
  },
  ShardRow: {
    blank: {
      shard: "",
      gpus: 0,
      peak_allocated_mb: 0,
      peak_reserved_mb: 0,
      verdict: "",
    },
    parts: {
    },
  },
  StageRow: {
    blank: {
      modules: [],
      peak_allocated_mb: 0,
      peak_reserved_mb: 0,
    },
    parts: {
    },
  },
  Depth: {
    blank: {
      module: "",
      now: 0,
      more: 0,
    },
    parts: {
    },
  },
  PlanPage: {
    blank: {
      model: "",
      headline: "",
      gpu: "",
      batch_size: null,
      sequence_length: null,
      image_size: null,
      verdict: "",
      fits: null,
      peak_allocated_mb: null,
      peak_reserved_mb: null,
      low_mb: null,
      high_mb: null,
      smallest_limit_mb: null,
      capacity_mb: null,
      largest_batch: null,
      step_ms: null,
      step_low_ms: null,
      step_high_ms: null,
      samples_per_second: null,
      joules_per_step: null,
      unknown: {},
      batches: [],
      figures: [],
      held: [],
      gpus: [],
      checkpoints: [],
      shards: [],
      stages: [],
      gpus_needed: null,
      deepest: null,
      assumptions: [],
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      batches: "PlanRow",
      figures: "PlanFigure",
      held: "HeldRow",
      gpus: "PlanRow",
      checkpoints: "CheckpointRow",
      shards: "ShardRow",
      stages: "StageRow",
      deepest: "Depth",
    },
  },
  JobFigures: {
    blank: {
      step_ns: null,
      step_low_ns: null,
      step_high_ns: null,
      parallel_percent: null,
      balance_percent: null,
      communication_percent: null,
      wasted_percent: null,
      wasted_gpu_hours_per_day: null,
      flops_utilization_percent: null,
      matched_percent: null,
      clock_us: null,
      simulated_error_percent: null,
    },
    parts: {
    },
  },
  JobAccount: {
    blank: {
      rank: [],
      step_ns: [],
      compute_ns: [],
      transfer_ns: [],
      waiting_ns: [],
      bubble_ns: [],
      host_ns: [],
    },
    parts: {
    },
  },
  JobDelay: {
    blank: {
      rank: 0,
      host: "",
      owed_ns: 0,
      winnable_ns: 0,
      cause: "",
      significant: false,
      why: "",
    },
    parts: {
    },
  },
  JobWhatIf: {
    blank: {
      change: "",
      step_ns: 0,
      low_ns: 0,
      high_ns: 0,
      saved_percent: null,
    },
    parts: {
    },
  },
  JobCollective: {
    blank: {
      operation: "",
      dimension: "",
      size: "",
      module: "",
      calls_per_step: 0,
      bytes: null,
      transfer_ns: 0,
      waiting_ns: null,
      exposed_ns: 0,
      bus_bytes_per_second: null,
      attainable_bytes_per_second: null,
      verdict: "",
      hiding_bytes_per_second: null,
    },
    parts: {
    },
  },
  JobHeat: {
    blank: {
      first: [],
      last: [],
      iterations: [],
      percent: [],
      of_rank: [],
    },
    parts: {
    },
  },
  JobDimension: {
    blank: {
      name: "",
      size: 0,
      place: [],
    },
    parts: {
    },
  },
  DistributedPage: {
    blank: {
      headline: "",
      world_size: 0,
      ranks: 0,
      missing: "",
      delays: [],
      what_if: [],
      collectives: [],
      heat: null,
      mesh: [],
      shown_ranks: [],
      notes: [],
    },
    parts: {
      ref: "RunRef",
      figures: "JobFigures",
      account: "JobAccount",
      delays: "JobDelay",
      what_if: "JobWhatIf",
      collectives: "JobCollective",
      heat: "JobHeat",
      mesh: "JobDimension",
    },
  },
  JobPart: {
    blank: {
      part: "",
      base_ns: null,
      candidate_ns: null,
      difference_ns: null,
    },
    parts: {
    },
  },
  JobDelayChange: {
    blank: {
      what: "",
      rank: 0,
      cause: "",
      base_winnable_ns: null,
      winnable_ns: null,
      why: "",
    },
    parts: {
    },
  },
  JobRankChange: {
    blank: {
      rank: 0,
      base_ranks: "",
      compute_ns: 0,
      transfer_ns: 0,
      waiting_ns: null,
      bubble_ns: 0,
      host_ns: 0,
      step_ns: 0,
    },
    parts: {
    },
  },
  JobCollectiveChange: {
    blank: {
      operation: "",
      dimension: "",
      size: "",
      module: "",
      base_calls: null,
      calls: null,
      base_transfer_ns: null,
      transfer_ns: null,
      base_waiting_ns: null,
      waiting_ns: null,
      base_exposed_ns: null,
      exposed_ns: null,
      difference_ns: 0,
    },
    parts: {
    },
  },
  ScaledRow: {
    blank: {
      job: "",
      gpus: 0,
      step_ns: 0,
      work: null,
      throughput: null,
      efficiency_percent: null,
      compute: null,
      host: null,
      transfer: null,
      waiting: null,
      bubble: null,
      flops_utilization_percent: null,
      wasted_gpu_hours_per_day: null,
    },
    parts: {
    },
  },
  OtherJobsPage: {
    blank: {
      base: "",
      headline: "",
      parts: [],
      delays: [],
      ranks: [],
      collectives: [],
      scaling_headline: "",
      scaling: [],
      notes: [],
    },
    parts: {
      ref: "RunRef",
      parts: "JobPart",
      delays: "JobDelayChange",
      ranks: "JobRankChange",
      collectives: "JobCollectiveChange",
      scaling: "ScaledRow",
    },
  },
  RankLine: {
    blank: {
      rank: 0,
      begin_ns: 0,
      start_ns: [],
      duration_ns: [],
      waiting_ns: [],
      work_ns: [],
      name: [],
      match: [],
    },
    parts: {
    },
  },
  RankLinesPage: {
    blank: {
      step: 0,
      length_ns: 0,
      clocks: "",
      names: [],
      lines: [],
    },
    parts: {
      lines: "RankLine",
    },
  },
  EnergyChoice: {
    blank: {
      precision: "",
      batch_size: null,
      step_ms: null,
      joules_per_step: null,
      low_joules: null,
      high_joules: null,
      joules_per_sample: null,
      saved_percent: null,
      why: "",
    },
    parts: {
    },
  },
  EnergyLimit: {
    blank: {
      name: "",
      percent: 0,
    },
    parts: {
    },
  },
  EnergyPart: {
    blank: {
      kind: "",
      joules: 0,
      percent: 0,
    },
    parts: {
    },
  },
  EnergyModule: {
    blank: {
      path: "",
      joules: 0,
      percent: 0,
    },
    parts: {
    },
  },
  EnergyOp: {
    blank: {
      id: "",
      name: "",
      direction: "",
      joules: 0,
      percent: 0,
      watts: null,
    },
    parts: {
    },
  },
  EpochEnergy: {
    blank: {
      steps: 0,
      processes: 0,
      hours: 0,
      kwh: 0,
      cost: null,
      co2_grams: null,
    },
    parts: {
    },
  },
  EnergyPage: {
    blank: {
      headline: "",
      joules_per_step: null,
      low_joules: null,
      high_joules: null,
      joules_per_sample: null,
      watts: null,
      idle_watts: null,
      idle_percent: null,
      power_limit_watts: null,
      sm_clock_mhz: null,
      temperature_c: null,
      seconds: null,
      choices: [],
      limits: [],
      residual_percent: null,
      parts: [],
      modules: [],
      ops: [],
      total_ops: 0,
      epoch: null,
      unknown: {},
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      choices: "EnergyChoice",
      limits: "EnergyLimit",
      parts: "EnergyPart",
      modules: "EnergyModule",
      ops: "EnergyOp",
      epoch: "EpochEnergy",
    },
  },
  KeyNodeCandidate: {
    blank: {
      key_node: "",
      id: "",
      name: "",
      direction: "",
      calls: 0,
    },
    parts: {
    },
  },
  KeyNodesPage: {
    blank: {
      found_by: "",
      iterations: 0,
      rows: [],
      total_rows: 0,
    },
    parts: {
      ref: "RunRef",
      rows: "KeyNodeCandidate",
    },
  },
  SearchHit: {
    blank: {
      kind: "kernel",
      id: "",
      label: "",
      detail: "",
      value_ns: null,
      fit: 0,
    },
    parts: {
    },
  },
  SearchPage: {
    blank: {
      text: "",
      iterations: 0,
      hits: [],
      found: {},
    },
    parts: {
      ref: "RunRef",
      hits: "SearchHit",
    },
  },
  Related: {
    blank: {
      kind: "kernel",
      id: "",
      name: "",
      ops: [],
      kernels: [],
      modules: [],
    },
    parts: {
      ref: "RunRef",
    },
  },
  ReportEntry: {
    blank: {
      name: "",
      title: "",
      question: "",
      of_dlprof: false,
    },
    parts: {
    },
  },
  ReportColumn: {
    blank: {
      key: "",
      label: "",
      unit: "bytes",
      verdict: false,
      meaning: "",
    },
    parts: {
    },
  },
  ReportPage: {
    blank: {
      name: "",
      title: "",
      question: "",
      headline: "",
      reports: [],
      columns: [],
      rows: [],
      total_rows: 0,
      notes: [],
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      reports: "ReportEntry",
      columns: "ReportColumn",
    },
  },
  Reading: {
    blank: {
      label: "",
      value: null,
      unit: "bytes",
      threshold: null,
    },
    parts: {
    },
  },
  EvidenceRow: {
    blank: {
      label: "",
      value_ns: null,
      percent: null,
      page: "",
      id: "",
    },
    parts: {
    },
  },
  Reference: {
    blank: {
      title: "",
      url: "",
    },
    parts: {
    },
  },
  Peer: {
    blank: {
      tool: "",
      name: "",
    },
    parts: {
    },
  },
  FindingItem: {
    blank: {
      id: "",
      rule: "",
      severity: "high",
      title: "",
      seen: "",
      readings: [],
      evidence: [],
      change: "",
      code: "",
      saving: null,
      saving_unknown_because: "",
      confirm: "",
      confidence: "high",
      references: [],
      peers: [],
    },
    parts: {
      readings: "Reading",
      evidence: "EvidenceRow",
      saving: "SavingItem",
      references: "Reference",
      peers: "Peer",
    },
  },
  CombinedSaving: {
    blank: {
      low_ns: 0,
      expected_ns: 0,
      high_ns: 0,
      percent: 0,
      findings: 0,
      added_up_ns: 0,
    },
    parts: {
    },
  },
  RuleLine: {
    blank: {
      rule: "",
      title: "",
      topic: "",
      outcome: "failed",
      why: "",
      looks_for: "",
      ignore_when: "",
    },
    parts: {
    },
  },
  ForecastOp: {
    blank: {
      id: "",
      name: "",
      direction: "",
      measured_ms: 0,
      predicted_ms: 0,
      speedup: null,
      casts_ms: 0,
      precision: "",
      module: "",
      op_type: "",
    },
    parts: {
    },
  },
  ForecastPage: {
    blank: {
      model: "",
      gpu: "",
      precision: "",
      batch_size: null,
      headline: "",
      measured_step_ms: 0,
      unprofiled_step_ms: 0,
      predicted_step_ms: 0,
      low_ms: 0,
      high_ms: 0,
      speedup: 0,
      speedup_low: 0,
      speedup_high: 0,
      limited_by: "",
      limit_text: "",
      gpu_ms: 0,
      gpu_before_ms: 0,
      cpu_ms: 0,
      casts: 0,
      casts_ms: 0,
      scaler_ms: 0,
      total_rows: 0,
      ops: [],
    },
    parts: {
      ref: "RunRef",
      ops: "ForecastOp",
    },
  },
  MixedPrecisionChoice: {
    blank: {
      precision: "",
      label: "",
      change: "",
      code: "",
      refusal: "",
      forecast: null,
    },
    parts: {
      forecast: "ForecastPage",
    },
  },
  MixedPrecision: {
    blank: {
      choices: [],
      iterations: 0,
    },
    parts: {
      choices: "MixedPrecisionChoice",
    },
  },
  AdvicePage: {
    blank: {
      title: "",
      headline: "",
      findings: [],
      combined: null,
      combined_text: "",
      rules: [],
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
      step: "StepFigures",
      findings: "FindingItem",
      combined: "CombinedSaving",
      rules: "RuleLine",
      mixed_precision: "MixedPrecision",
    },
  },
  TriedRow: {
    blank: {
      remedy: "",
      before_ns: null,
      after_ns: null,
      gain_percent: null,
      low_percent: null,
      high_percent: null,
      forecast_percent: null,
      memory_bytes: null,
      joules: null,
      start_s: null,
      verdict: "",
      title: "",
      is_gain: false,
      verdict_text: "",
      changes: "",
      code: "",
      run: "",
    },
    parts: {
    },
  },
  NotTriedRow: {
    blank: {
      remedy: "",
      title: "",
      why: "",
      failed: false,
    },
    parts: {
    },
  },
  TriedPage: {
    blank: {
      headline: "",
      command: "",
      device: "",
      baseline_ns: null,
      best: [],
      best_gain_percent: null,
      best_low_percent: null,
      best_high_percent: null,
      best_verdict: "",
      patch: "",
      by_hand: [],
      rows: [],
      sets: [],
      not_tried: [],
      seeds_differ: "",
      seconds: null,
      notes: [],
    },
    parts: {
      ref: "RunRef",
      rows: "TriedRow",
      sets: "TriedRow",
      not_tried: "NotTriedRow",
    },
  },
  TrustPage: {
    blank: {
      verdict: "fair",
      reasons: [],
    },
    parts: {
      ref: "RunRef",
      reasons: "TrustReasonText",
    },
  },
  CompareSide: {
    blank: {
      title: "",
      precision: "",
      model: "",
      device: "",
      step_text: "",
    },
    parts: {
      ref: "RunRef",
      range: "SelectedRange",
    },
  },
  CompareBatches: {
    blank: {
      base: 0,
      candidate: 0,
      recorded: false,
      speedup_per_sample: null,
    },
    parts: {
    },
  },
  CompareBoth: {
    blank: {
      base: null,
      candidate: null,
    },
    parts: {
    },
  },
  CompareShares: {
    blank: {
      total_ns: 0,
      matched: null,
      casts: null,
      scaler: null,
      compiled: null,
      unmatched: null,
      unlinked: null,
      matched_of_model: null,
    },
    parts: {
    },
  },
  CompareSharesOfBoth: {
    blank: {
    },
    parts: {
      base: "CompareShares",
      candidate: "CompareShares",
    },
  },
  CompareBucket: {
    blank: {
      key: "",
      base_outside_ns: 0,
      candidate_outside_ns: 0,
      base_ms: 0,
      candidate_ms: 0,
      difference_ms: 0,
      label: "",
      base_ns: 0,
      candidate_ns: 0,
      difference_ns: 0,
      low_ms: null,
      high_ms: null,
      noise: null,
    },
    parts: {
    },
  },
  CompareMetric: {
    blank: {
      key: "",
      label: "",
      unit: "bytes",
      a: null,
      b: null,
      ratio: null,
      gain: null,
      better: "",
    },
    parts: {
    },
  },
  CompareKernelFamily: {
    blank: {
      family: "",
      a_ns: 0,
      b_ns: 0,
      a_calls: 0,
      b_calls: 0,
      a_tensor_core_ns: 0,
      b_tensor_core_ns: 0,
    },
    parts: {
    },
  },
  CompareModule: {
    blank: {
      module: "",
      status: "",
      ops: 0,
      a_ns: null,
      b_ns: null,
      difference_ns: 0,
      low_ns: null,
      high_ns: null,
      noise: null,
      speedup: null,
      change_ns: 0,
      change_percent: null,
      a_precision: "",
      b_precision: "",
      a_kernels: null,
      b_kernels: null,
      a_roof_percent: null,
      b_roof_percent: null,
      a_buckets: {},
      b_buckets: {},
    },
    parts: {
    },
  },
  CompareOp: {
    blank: {
      id: "",
      name: "",
      role: "backward",
      a_ns: null,
      b_ns: null,
      difference_ns: null,
      speedup: null,
      change_percent: null,
      a_using_tc: "no",
      b_using_tc: "no",
      a_precision: "",
      b_precision: "",
      a_kernels: null,
      b_kernels: null,
      a_roof_percent: null,
      b_roof_percent: null,
      reason: "",
      op_type: "",
      module: "",
      b_module: "",
      listed_in: "",
      direction: "",
      dims: "",
      how: "",
      a_id: null,
      b_id: null,
      low_ns: null,
      high_ns: null,
      noise: null,
      change_ns: 0,
      a_cast_ns: null,
      b_cast_ns: null,
      a_buckets: {},
      b_buckets: {},
    },
    parts: {
    },
  },
  ForecastCheckPart: {
    blank: {
      key: "",
      label: "",
      predicted_ms: 0,
      measured_ms: 0,
      error_percent: null,
    },
    parts: {
    },
  },
  ForecastCheckOp: {
    blank: {
      id: "",
      name: "",
      module: "",
      op_type: "",
      direction: "",
      before_ms: 0,
      predicted_ms: 0,
      measured_ms: null,
      error_ms: null,
      error_percent: null,
      precision: "",
    },
    parts: {
    },
  },
  ForecastCheckPanel: {
    blank: {
      precision: "",
      headline: "",
      outcome: "longer",
      outcome_text: "",
      base_ms: 0,
      predicted_ms: 0,
      low_ms: 0,
      high_ms: 0,
      step_ms: 0,
      step_low_ms: 0,
      step_high_ms: 0,
      recorded_ms: 0,
      estimated: false,
      error_percent: 0,
      limited_by: "",
      limit_text: "",
      note: "",
      parts: [],
      ops: [],
      total_rows: 0,
    },
    parts: {
      parts: "ForecastCheckPart",
      ops: "ForecastCheckOp",
    },
  },
  RealisedSavingRow: {
    blank: {
      rule: "",
      title: "",
      change: "",
      low_ns: 0,
      expected_ns: 0,
      high_ns: 0,
      realised_ns: 0,
      realised_low_ns: null,
      realised_high_ns: null,
      estimated: false,
      outcome: "broken",
      text: "",
    },
    parts: {
    },
  },
  PredictionCheck: {
    blank: {
      forecast: null,
      refusal: "",
      savings: [],
    },
    parts: {
      forecast: "ForecastCheckPanel",
      savings: "RealisedSavingRow",
    },
  },
  ComparePage: {
    blank: {
      headline: "",
      different_models: false,
      across_frameworks: false,
      explanation: [],
      basis: "cpu",
      base_ms: 0,
      candidate_ms: 0,
      step_difference_ns: 0,
      speedup: null,
      speedup_low: null,
      speedup_high: null,
      noise: null,
      batches: null,
      buckets: [],
      metrics: [],
      a_categories: [],
      b_categories: [],
      families: [],
      modules: [],
      total_modules: 0,
      ops: [],
      total_rows: 0,
      reason_texts: {},
      promises: null,
      warnings: [],
      notes: [],
    },
    parts: {
      a: "CompareSide",
      b: "CompareSide",
      base_step: "StepFigures",
      candidate_step: "StepFigures",
      batches: "CompareBatches",
      matched_gpu_time_percent: "CompareBoth",
      shares: "CompareSharesOfBoth",
      buckets: "CompareBucket",
      metrics: "CompareMetric",
      a_categories: "Slice",
      b_categories: "Slice",
      families: "CompareKernelFamily",
      modules: "CompareModule",
      ops: "CompareOp",
      promises: "PredictionCheck",
    },
  },
  RunAdvice: {
    blank: {
      rule: "",
      severity: "",
      problem: "",
      change: "",
      saving_ns: null,
      saving_percent: null,
    },
    parts: {
    },
  },
  RunRow: {
    blank: {
      model: "",
      precision: "",
      batch_size: null,
      step_ns: 0,
      speedup: null,
      change: "faster",
      base: "",
      changes: [],
      samples_per_second: null,
      recorded_ns: 0,
      step_words: "",
      gpu_utilization: null,
      tensor_core_utilization: null,
      tensor_core_share: null,
      peak_memory_bytes: null,
      joules_per_step: null,
      joules_per_sample: null,
      flops: null,
      launches: null,
      advice: null,
      workers: null,
      gpu: "",
      precision_key: "",
      gpus: 0,
      iterations: 0,
      step_low_ns: 0,
      step_high_ns: 0,
      step_source: "",
      deviation_ns: null,
      no_base: "",
      low: null,
      high: null,
      by_samples: false,
      peak_memory_of: "",
      watts: null,
    },
    parts: {
      ref: "RunRef",
      advice: "RunAdvice",
    },
  },
  FailedRun: {
    blank: {
      run: "",
      why: "",
    },
    parts: {
    },
  },
  ManyRunsPage: {
    blank: {
      headline: "",
      note: "",
      base: "",
      done: 0,
      total: 0,
      rows: [],
      total_rows: 0,
      failed: [],
    },
    parts: {
      rows: "RunRow",
      failed: "FailedRun",
    },
  },
  ModelSide: {
    blank: {
      precision: "",
      gpu_utilization: null,
      tensor_core_utilization: null,
      step_ns: 0,
      step_source: "",
      step_words: "",
      recorded_ns: 0,
      deviation_ns: null,
      samples_per_second: null,
      peak_memory_bytes: null,
      problems: [],
    },
    parts: {
      ref: "RunRef",
    },
  },
  ModelRow: {
    blank: {
      model: "",
      batch_size: null,
      gpu: "",
      before: null,
      after: null,
      changes: [],
      speedup: null,
      low: null,
      high: null,
      change: "faster",
      best: "",
      next: null,
      recommendation: "",
    },
    parts: {
      before: "ModelSide",
      after: "ModelSide",
      next: "RunAdvice",
    },
  },
  ByModelPage: {
    blank: {
      headline: "",
      done: 0,
      total: 0,
      rows: [],
      total_rows: 0,
      failed: [],
    },
    parts: {
      rows: "ModelRow",
      failed: "FailedRun",
    },
  },
  SweepOption: {
    blank: {
      key: "",
      label: "",
    },
    parts: {
    },
  },
  SweepMark: {
    blank: {
      position: 0,
      value: 0,
      estimated: false,
    },
    parts: {
      ref: "RunRef",
    },
  },
  SweepCurve: {
    blank: {
      label: "",
      precision_key: "",
      marks: [],
    },
    parts: {
      marks: "SweepMark",
    },
  },
  SweepLeftOut: {
    blank: {
      run: "",
      why: "",
    },
    parts: {
    },
  },
  SweepPage: {
    blank: {
      headline: "",
      done: 0,
      total: 0,
      over: "",
      over_label: "",
      overs: [],
      measure: "",
      measure_label: "",
      measures: [],
      unit: "bytes",
      kernel_group: "",
      kernel_groups: [],
      op: "",
      ops: [],
      ordered: false,
      positions: [],
      curves: [],
      common: [],
      notes: [],
      left_out: [],
      failed: [],
    },
    parts: {
      overs: "SweepOption",
      measures: "SweepOption",
      kernel_groups: "SweepOption",
      ops: "SweepOption",
      curves: "SweepCurve",
      left_out: "SweepLeftOut",
      failed: "FailedRun",
    },
  },
  CompareKernel: {
    blank: {
      name: "",
      ns: 0,
      calls: 0,
      uses_tc: "no",
      precision: "",
      short_name: "",
      cast: false,
    },
    parts: {
    },
  },
  CompareOpDetail: {
    blank: {
      reason_text: "",
      a_kernels: [],
      b_kernels: [],
    },
    parts: {
      op: "CompareOp",
      a_kernels: "CompareKernel",
      b_kernels: "CompareKernel",
    },
  },
  TraceFile: {
    blank: {
      name: "",
      path: "",
      size_bytes: 0,
      version: "",
      copy: false,
      of_profile: false,
    },
    parts: {
    },
  },
  PytorchTab: {
    blank: {
      run: "",
      worker: "",
      span: null,
      reads: "copy",
      remedy: "",
    },
    parts: {
    },
  },
  TraceLinks: {
    blank: {
      files: [],
      missing: null,
      pytorch_tab: null,
    },
    parts: {
      ref: "RunRef",
      files: "TraceFile",
      pytorch_tab: "PytorchTab",
    },
  },
};
