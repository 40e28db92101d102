// What the page reads. Keys carry their unit; null is "not known" and is shown as a dash.

export type Num = number | null;

export interface Machine {
  name: string;
  type: string;
  market: string | null;
  usd_per_hour: Num;
  from_s: number;
  to_s: Num;
  end: 'lost' | 'released' | null;
  notice_s: Num;
}

export interface Shape {
  t_s: number;
  data_parallel: number;
  stages: number;
  extra?: number;
}

export interface Happening {
  id: number;
  t_s: number;
  kind: string;
  text: string;
  why: string | null;
  worker: string | null;
  stall_s: Num;
  cost_usd: Num;
}

export interface Share {
  useful: number;
  redundant: number;
  reconfigure: number;
  lost: number;
  idle: number;
}

export interface Predicted {
  time_s: Num;
  time_s_p10: Num;
  time_s_p90: Num;
  cost_usd: Num;
  cost_usd_p10: Num;
  cost_usd_p90: Num;
  target_samples: Num;
  loss: { t_s: number[]; loss: Num[] } | null;
}

export interface Score {
  what: string;
  promised: Num;
  predicted: Num;
  delivered: Num;
  unit: string;
  kept: boolean | null;
}

export interface View {
  format: 'mayfly-view/1';
  name: string;
  simulated: boolean;
  state: string | null;
  phase: string | null;
  end: string | null;
  failure: string | null;
  time_s: Num;
  step: Num;
  samples: Num;
  target_samples: Num;
  epochs: Num;
  loss: Num;
  target_loss: Num;
  validation_loss: Num;
  accuracy: Num;
  samples_per_s: Num;
  left_s: Num;
  deadline_s: Num;
  deadline_met: boolean | null;
  budget_usd: Num;
  cost_usd: Num;
  usd_per_hour: Num;
  on_demand_cost_usd: Num;
  preemptions: Num;
  samples_redone: Num;
  samples_repeated: Num;
  samples_skipped: Num;
  machines: Machine[];
  machines_total: number;
  counts: { t_s: number[]; series: { type: string; market: string | null; n: number[] }[]; used: number[] };
  shapes: Shape[];
  progress: { t_s: number[]; samples: Num[] };
  losses: { t_s: number[]; loss: Num[] };
  validation: { t_s: number[]; loss: Num[]; accuracy: Num[] };
  money: { t_s: number[]; usd: Num[]; usd_per_hour: Num[] };
  share: Share | null;
  happenings: Happening[];
  happenings_total: number;
  predicted: Predicted | null;
  scorecard: Score[];
}

export interface MachineLine {
  type: string;
  market: string;
  zone: string | null;
  n: number;
  usd_per_hour: Num;
}

export interface Option {
  cluster?: MachineLine[];
  servers?: MachineLine[];
  platform?: string;
  functions?: number;
  memory_mib?: number;
  time_s: Num;
  cost_usd: Num;
  deadline_probability?: Num;
  cost_usd_p50?: Num;
  cost_usd_p95?: Num;
}

export interface Plan extends Option {
  format: 'mayfly-plan/1';
  feasible: boolean;
  profile: string;
  catalog: string;
  predictor: string;
  target: { loss?: number; epochs?: number; steps?: number };
  deadline_s: Num;
  budget_usd: Num;
  search: { method: string; time_s: number; evaluated?: number; optimal?: boolean; gap?: Num };
  notes: string[];
  binding?: string;
  reason?: string;
  nearest?: Partial<Option> & { loss?: number };
  restarts?: Num;
  time_s_p10?: Num;
  time_s_p90?: Num;
  cost_usd_p10?: Num;
  cost_usd_p90?: Num;
  deadline_probability_p10?: Num;
  deadline_probability_p90?: Num;
  budget_probability?: Num;
  usd_per_hour?: Num;
  basis?: string;
  iterations?: Num;
  samples_per_s?: Num;
  bottleneck?: string;
  breakdown_s?: Record<string, number>;
  risk?: { trace: string | null; policy?: string; windows: number } | null;
  saving?: { on_demand_cost_usd?: Num };
  ties?: Option[];
  runners_up?: Option[];
  frontier?: Option[];
  considered?: Option[];
}

export interface Policy {
  policy: string;
  samples: Num;
  samples_per_s: Num;
  cost_usd: Num;
  time_s: Num;
  share?: Share | null;
  machine_hours?: Num;
  changes?: Num;
  preemptions?: Num;
  share_of_ideal?: Num;
  finished?: string;
  intervals?: { t_s: number; available: number; data_parallel: number; stages: number; extra?: number }[];
  progress?: { t_s: number[]; samples: Num[] };
  money?: { t_s: number[]; usd: Num[] };
}

export interface Replay {
  trace: {
    name: string;
    type: string | null;
    zones?: unknown;
    observation?: string;
    duration_s: number;
    mean_available: Num;
    max_available: Num;
    preemption_events: Num;
  };
  profile: string;
  sight?: string;
  policies: Policy[];
  ideal_samples?: Num;
  offline_optimum_samples?: Num;
  samples_target?: Num;
  deadline_s?: Num;
  budget_usd?: Num;
  time_s?: Num;
}

export interface Stall {
  seconds: number;
  seconds_low: number;
  seconds_high: number;
  share: number;
}

export interface Profile {
  name: string;
  origin?: { source?: string; date?: string; machine?: string; notes?: string[] };
  job?: { model?: string; dataset?: string };
  stalls?: {
    devices: number;
    batch: number;
    step_s: number;
    interconnect?: Stall | null;
    prep?: Stall | null;
    fetch?: Stall | null;
    network?: Stall | null;
  };
}

export interface Doc {
  format: 'mayfly-report/1';
  title: string;
  made: string;
  version: string;
  views: View[];
  plan: Plan | null;
  replay: Replay | null;
  profile: Profile | null;
}

export interface RunLine {
  name: string;
  job: string | null;
  state: string | null;
  phase: string | null;
  time_s: Num;
  samples: Num;
  target_samples: Num;
  loss: Num;
  cost_usd: Num;
  deadline_s: Num;
  deadline_met: boolean | null;
  preemptions: Num;
  written: string | null;
}

export interface Choices {
  profiles: { name: string; losses: { from: number; to: number } | null; epochs: boolean; pipeline: boolean }[];
  catalogs: string[];
  traces: { name: string; duration_s: number }[];
  policies: string[];
}
