import { duration, percent, plural, sentence } from '../format';
import { Card, Empty } from '../parts/card';
import type { Profile } from '../types';
import { stallRows, type Row } from './rows';

const colours: Record<string, string> = {
  compute: 'var(--useful)',
  interconnect: 'var(--f6)',
  prep: 'var(--f2)',
  fetch: 'var(--f3)',
};

const words: Record<string, string> = {
  interconnect: 'devices waiting for each other',
  prep: 'waiting for samples to be prepared',
  fetch: 'waiting for storage',
  network: 'if the devices were on machines of their own',
};

function Bar({ row, most, step }: { row: Row; most: number; step: number }) {
  const at = (seconds: number) => `${(100 * Math.min(most, Math.max(0, seconds))) / most}%`;
  const certain = row.low === null || row.low > 0;
  const interval =
    row.low === null || row.high === null
      ? ''
      : `95 %: ${duration(Math.max(0, row.low))} to ${duration(Math.max(0, row.high))}`;
  return (
    <div
      class="stall"
      role="img"
      data-stall={row.name}
      data-value={row.seconds}
      aria-label={`${row.name}: ${duration(Math.max(0, row.seconds))}, ${percent(Math.max(0, row.seconds) / step, 0)} of the step${interval ? `, ${interval}` : ''}`}
    >
      <span class="stall-name">
        <strong>{sentence(row.name)}</strong>
        {words[row.name] && <span class="quiet small">{words[row.name]}</span>}
      </span>
      <span class="stall-track">
        <span class="stall-bar" style={{ width: at(row.seconds), background: colours[row.name] }} />
        {row.low !== null && row.high !== null && (
          <span class="stall-interval" style={{ left: at(row.low), width: `calc(${at(row.high)} - ${at(row.low)})` }} />
        )}
      </span>
      <span class="stall-told">
        {duration(Math.max(0, row.seconds))}, {percent(Math.max(0, row.seconds) / step, 0)}
        <span class="quiet small">{certain ? interval : `${interval}; none that can be told`}</span>
      </span>
    </div>
  );
}

/** Where a step loses time, with what the measurement can tell for sure. */
export function Stalls({ profile }: { profile: Profile }) {
  const stalls = profile.stalls;
  if (!stalls)
    return <Empty title="This profile has no stall analysis">Measure one with mayfly profile JOB.yaml --stalls.</Empty>;
  const rows = stallRows(stalls);
  const most = Math.max(...rows.map((row) => Math.max(row.seconds, row.high ?? 0))) * 1.02;
  return (
    <Card
      title="Where a step waits"
      wide
      aside={`a step of ${plural(stalls.devices, 'device')} with ${stalls.batch} samples each, nothing cached: ${duration(stalls.step_s)}`}
    >
      <div class="stalls">
        {rows.map((row) => (
          <Bar key={row.name} row={row} most={most} step={stalls.step_s} />
        ))}
      </div>
      {stalls.network && (
        <p class="small quiet">
          On machines of their own the devices would be {percent(stalls.network.share, 0)} slower (
          {duration(stalls.network.seconds_low)} to {duration(stalls.network.seconds_high)} a step).
        </p>
      )}
      <p class="small quiet">
        Bars are means, brackets their 95 % intervals
        {profile.origin?.machine ? `; measured on ${profile.origin.machine}` : ''}.
      </p>
    </Card>
  );
}
