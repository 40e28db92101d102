import {
  clusterText,
  count,
  dash,
  duration,
  lossText,
  marketsText,
  percent,
  sentence,
  serversText,
  usd,
  whole,
} from '../format';
import { Card } from '../parts/card';
import { Figure, Tile } from '../parts/tile';
import type { Plan } from '../types';
import { Breakdown } from './breakdown';
import { Considered } from './considered';
import { Frontier } from './frontier';
import { RunnersUp } from './runners_up';

export function targetText(plan: Plan): string {
  const { loss, epochs, steps } = plan.target;
  if (loss !== undefined) return `loss ${lossText(loss)}`;
  if (epochs !== undefined) return `${count(epochs)} epochs`;
  return `${count(steps)} steps`;
}

/** What was asked for, in words. */
export function wishText(plan: Plan): string {
  const deadline = plan.deadline_s === null ? '' : ` within ${duration(plan.deadline_s)}`;
  const budget = plan.budget_usd === null ? '' : ` for at most ${usd(plan.budget_usd)}`;
  return `Asked for: ${plan.profile} to ${targetText(plan)}${deadline}${budget}, with machines of the catalogue ${plan.catalog}.`;
}

function band(low: number | null | undefined, high: number | null | undefined, text: (x: number) => string): string {
  return low == null || high == null ? '' : `8 of 10 within ${text(low)} to ${text(high)}`;
}

function proofText(plan: Plan): string {
  if (plan.search.optimal) return 'proven: nothing cheaper within the quotas';
  return plan.search.gap == null ? 'not proven' : `nothing cheaper by more than ${percent(plan.search.gap)}`;
}

function Feasible({ plan }: { plan: Plan }) {
  const slack = plan.deadline_s === null || plan.time_s === null ? null : plan.deadline_s - plan.time_s;
  const onDemand = plan.saving?.on_demand_cost_usd ?? null;
  const saved = onDemand !== null && plan.cost_usd !== null && onDemand > 0 ? 1 - plan.cost_usd / onDemand : null;
  const servers = serversText(plan);
  const chance = plan.deadline_probability;
  return (
    <>
      <p class="promise">
        Rent{' '}
        <strong>
          <Figure id="plan-cluster" value={clusterText(plan)}>
            {clusterText(plan)}
          </Figure>
        </strong>
        {plan.functions ? '' : ` (${marketsText(plan)})`}
        {servers && <> with {servers} as parameter server</>}: {targetText(plan)} is reached in{' '}
        <strong>{duration(plan.time_s)}</strong> for <strong>{usd(plan.cost_usd)}</strong>
        {slack !== null &&
          (slack >= 0 ? `, ${duration(slack)} before the deadline` : `, ${duration(-slack)} after the deadline`)}
        .
      </p>
      <div class="tiles">
        <Tile
          title="Time"
          figure={
            <Figure id="plan-time-s" value={plan.time_s}>
              {duration(plan.time_s)}
            </Figure>
          }
          done={plan.deadline_s === null || plan.time_s === null ? null : plan.time_s / plan.deadline_s}
        >
          {band(plan.time_s_p10, plan.time_s_p90, duration) || 'no band known'}
        </Tile>
        <Tile
          title="Cost"
          figure={
            <Figure id="plan-cost-usd" value={plan.cost_usd}>
              {usd(plan.cost_usd)}
            </Figure>
          }
          done={plan.budget_usd === null || plan.cost_usd === null ? null : plan.cost_usd / plan.budget_usd}
        >
          {band(plan.cost_usd_p10, plan.cost_usd_p90, usd) || 'no band known'}
        </Tile>
        {chance != null && (
          <Tile
            title="Chance to be in time"
            tone={chance >= 0.9 ? 'good' : chance >= 0.5 ? 'warn' : 'bad'}
            figure={
              <Figure id="plan-deadline-probability" value={chance}>
                {percent(chance, 0)}
              </Figure>
            }
            done={chance}
          >
            {!plan.risk
              ? "as far as the prediction's own error goes"
              : plan.risk.trace
                ? `${whole(plan.risk.windows)} windows of ${plan.risk.trace}, policy ${plan.risk.policy}`
                : `${whole(plan.risk.windows)} draws of the usual weather`}
            {plan.cost_usd_p95 != null && `; ${usd(plan.cost_usd_p95)} at most in 95 %`}
          </Tile>
        )}
        <Tile
          title="Against on demand"
          figure={
            <Figure id="plan-saved-share" value={saved}>
              {saved === null ? dash : `${percent(saved, 0)} less`}
            </Figure>
          }
          tone={saved !== null && saved > 0 ? 'good' : null}
        >
          {onDemand === null ? 'no such price is known' : `the same machines on demand: ${usd(onDemand)}`}
        </Tile>
        <Tile
          title="Price"
          figure={
            <Figure id="plan-usd-per-hour" value={plan.usd_per_hour}>
              {usd(plan.usd_per_hour)}/h
            </Figure>
          }
        >
          {plan.samples_per_s != null && `${count(plan.samples_per_s)} samples/s, `}figures {plan.basis ?? dash}
        </Tile>
        <Tile title="Search" figure={`${duration(plan.search.time_s)}`}>
          {plan.search.evaluated != null && `${count(plan.search.evaluated)} predictions, `}
          {proofText(plan)}
        </Tile>
      </div>
    </>
  );
}

function Infeasible({ plan }: { plan: Plan }) {
  const nearest = plan.nearest ?? {};
  const some = (nearest.cluster?.length ?? 0) > 0 || nearest.functions;
  return (
    <div class="refusal">
      <p class="promise">
        No plan keeps this promise: the{' '}
        <strong>
          <Figure id="plan-binding" value={plan.binding ?? ''}>
            {plan.binding ?? dash}
          </Figure>
        </strong>{' '}
        binds.
      </p>
      <p>{sentence(plan.reason ?? '')}.</p>
      {some && (
        <div class="tiles">
          <Tile title="Nearest" figure={<span class="cluster-figure">{clusterText(nearest)}</span>}>
            {marketsText(nearest)}
            {serversText(nearest) && `, with ${serversText(nearest)}`}
          </Tile>
          <Tile
            title="It takes"
            figure={
              <Figure id="nearest-time-s" value={nearest.time_s}>
                {duration(nearest.time_s)}
              </Figure>
            }
          >
            {plan.deadline_s !== null && `asked for ${duration(plan.deadline_s)}`}
          </Tile>
          <Tile
            title="It costs"
            figure={
              <Figure id="nearest-cost-usd" value={nearest.cost_usd}>
                {usd(nearest.cost_usd)}
              </Figure>
            }
          >
            {plan.budget_usd !== null && `budget ${usd(plan.budget_usd)}`}
          </Tile>
          {nearest.loss !== undefined && (
            <Tile
              title="Lowest loss by then"
              figure={
                <Figure id="nearest-loss" value={nearest.loss}>
                  {lossText(nearest.loss)}
                </Figure>
              }
            >
              {plan.target.loss !== undefined && `asked for ${lossText(plan.target.loss)}`}
            </Tile>
          )}
        </div>
      )}
    </div>
  );
}

/** The answer of the planner: a promise, or what stands against it. */
export function PlanView({ plan }: { plan: Plan }) {
  return (
    <div class="plan" data-feasible={plan.feasible}>
      <p class="wish">{wishText(plan)}</p>
      {plan.feasible ? <Feasible plan={plan} /> : <Infeasible plan={plan} />}
      {plan.feasible && (
        <div class="grid">
          <Frontier plan={plan} />
          <div class="column">
            {plan.breakdown_s && Object.keys(plan.breakdown_s).length > 0 && (
              <Breakdown parts={plan.breakdown_s} bottleneck={plan.bottleneck ?? null} />
            )}
            <RunnersUp plan={plan} />
          </div>
          <Considered plan={plan} />
        </div>
      )}
      {plan.notes.length > 0 && (
        <Card title="Notes">
          <ul class="notes">
            {plan.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </Card>
      )}
    </div>
  );
}
