import { api } from '../api';
import { count, dash, duration, lossText, moment, percent, usd, whole } from '../format';
import { Empty, Problem } from '../parts/card';
import { StateChip } from '../parts/state_chip';
import { runHash } from '../route';
import type { RunLine } from '../types';
import { useAsked } from './asked';

function Deadline({ run }: { run: RunLine }) {
  if (run.deadline_s === null) return <span>{dash}</span>;
  const met = run.deadline_met === null ? '' : run.deadline_met ? ' ✓' : ' ✕';
  return (
    <span class={run.deadline_met === false ? 'missed' : undefined}>
      {duration(run.deadline_s)}
      {met}
    </span>
  );
}

function Row({ run }: { run: RunLine }) {
  const done = run.samples !== null && run.target_samples ? run.samples / run.target_samples : null;
  return (
    <li class="run-row" data-testid="run-row" data-name={run.name}>
      <a href={runHash(run.name)}>
        <span class="run-name">
          <strong>{run.name}</strong>
          {run.job && run.job !== run.name && <span class="quiet small">{run.job}</span>}
        </span>
        <StateChip state={run.state} phase={run.phase} />
        <span class="run-done">
          <span class="meter" aria-hidden="true">
            <span style={{ width: `${100 * Math.min(1, done ?? 0)}%` }} />
          </span>
          <span class="small">
            {percent(done, 0)} of {count(run.target_samples)} samples
          </span>
        </span>
        <span class="run-figure">
          <span class="small quiet">time</span>
          {duration(run.time_s)}
        </span>
        <span class="run-figure">
          <span class="small quiet">deadline</span>
          <Deadline run={run} />
        </span>
        <span class="run-figure">
          <span class="small quiet">loss</span>
          {lossText(run.loss)}
        </span>
        <span class="run-figure">
          <span class="small quiet">cost</span>
          {usd(run.cost_usd)}
        </span>
        <span class="run-figure">
          <span class="small quiet">preempted</span>
          {whole(run.preemptions)}
        </span>
        <span class="run-written small quiet">{moment(run.written)}</span>
      </a>
    </li>
  );
}

const everyMs = 3000;

export function Runs() {
  const { answer, fault, again } = useAsked(api.runs, everyMs);
  return (
    <>
      <div class="title">
        <h1>Runs</h1>
        {answer && <span class="quiet">{answer.length}, newest first</span>}
      </div>
      {fault && (
        <Problem title="The list of runs cannot be read.">
          {fault}{' '}
          <button type="button" class="chip" onClick={again}>
            try again
          </button>
        </Problem>
      )}
      {answer === null && !fault && (
        <p class="empty" role="status">
          Asking for runs.
        </p>
      )}
      {answer?.length === 0 && (
        <Empty title="No runs yet">
          Start one with <code>mayfly run job.yaml -d</code>; it will appear here by itself.
        </Empty>
      )}
      {answer && answer.length > 0 && (
        <ul class="runs">
          {answer.map((run) => (
            <Row key={run.name} run={run} />
          ))}
        </ul>
      )}
    </>
  );
}
