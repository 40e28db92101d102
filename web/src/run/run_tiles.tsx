import { count, dash, duration, lossText, percent, plural, usd, whole } from '../format';
import { Figure, Tile } from '../parts/tile';
import type { Num, View } from '../types';

function ratio(a: Num, b: Num): Num {
  return a !== null && b !== null && b > 0 ? a / b : null;
}

/** Machines held at the end of the counts. */
export function machinesNow(view: View): Num {
  const { series } = view.counts;
  if (series.length === 0) return null;
  return series.reduce((sum, one) => sum + (one.n[one.n.length - 1] ?? 0), 0);
}

export function savedShare(view: View): Num {
  const paid = ratio(view.cost_usd, view.on_demand_cost_usd);
  return paid === null ? null : 1 - paid;
}

function ProgressTile({ view }: { view: View }) {
  const done = ratio(view.samples, view.target_samples);
  return (
    <Tile
      title="Progress"
      figure={
        <Figure id="progress" value={done}>
          {percent(done)}
        </Figure>
      }
      done={done}
      tone={view.state === 'failed' ? 'bad' : null}
    >
      <Figure id="samples" value={view.samples}>
        {count(view.samples)}
      </Figure>{' '}
      of{' '}
      <Figure id="target-samples" value={view.target_samples}>
        {count(view.target_samples)}
      </Figure>{' '}
      samples
      {view.epochs !== null && (
        <>
          ,{' '}
          <Figure id="epochs" value={view.epochs}>
            {view.epochs.toFixed(2)}
          </Figure>{' '}
          epochs
        </>
      )}
    </Tile>
  );
}

function TimeTile({ view }: { view: View }) {
  const over = view.end !== null;
  const arrival = over || view.time_s === null || view.left_s === null ? view.time_s : view.time_s + view.left_s;
  const slack = view.deadline_s === null || arrival === null ? null : view.deadline_s - arrival;
  const tone = view.deadline_met === null ? null : view.deadline_met ? 'good' : 'bad';
  return (
    <Tile
      title={over ? 'Time taken' : 'Time'}
      figure={
        <Figure id="time-s" value={view.time_s}>
          {duration(view.time_s)}
        </Figure>
      }
      done={view.deadline_s === null ? null : ratio(view.time_s, view.deadline_s)}
      tone={tone}
    >
      {!over && (
        <>
          <Figure id="left-s" value={view.left_s}>
            {duration(view.left_s)}
          </Figure>{' '}
          left
        </>
      )}
      {view.deadline_s === null ? (
        over ? (
          'no deadline'
        ) : (
          ', no deadline'
        )
      ) : (
        <>
          {!over && ', '}
          {slack === null ? '' : slack >= 0 ? `${duration(slack)} before the ` : `${duration(-slack)} after the `}
          <Figure id="deadline-s" value={view.deadline_s}>
            {duration(view.deadline_s)}
          </Figure>{' '}
          deadline
        </>
      )}
    </Tile>
  );
}

function LossTile({ view }: { view: View }) {
  const reached = view.target_loss !== null && view.loss !== null && view.loss <= view.target_loss;
  return (
    <Tile
      title="Loss"
      figure={
        <Figure id="loss" value={view.loss}>
          {lossText(view.loss)}
        </Figure>
      }
      tone={reached ? 'good' : null}
    >
      {view.target_loss === null ? (
        'no target'
      ) : (
        <>
          target{' '}
          <Figure id="target-loss" value={view.target_loss}>
            {lossText(view.target_loss)}
          </Figure>
        </>
      )}
      {view.validation_loss !== null && (
        <>
          , validation{' '}
          <Figure id="validation-loss" value={view.validation_loss}>
            {lossText(view.validation_loss)}
          </Figure>
        </>
      )}
      {view.accuracy !== null && (
        <>
          , accuracy{' '}
          <Figure id="accuracy" value={view.accuracy}>
            {percent(view.accuracy)}
          </Figure>
        </>
      )}
    </Tile>
  );
}

function MoneyTile({ view }: { view: View }) {
  const saved = savedShare(view);
  const over = view.budget_usd !== null && view.cost_usd !== null && view.cost_usd > view.budget_usd;
  return (
    <Tile
      title="Money"
      figure={
        <Figure id="cost-usd" value={view.cost_usd}>
          {usd(view.cost_usd)}
        </Figure>
      }
      done={view.budget_usd === null ? null : ratio(view.cost_usd, view.budget_usd)}
      tone={over ? 'bad' : null}
    >
      {view.budget_usd === null ? (
        'no budget'
      ) : (
        <>
          of{' '}
          <Figure id="budget-usd" value={view.budget_usd}>
            {usd(view.budget_usd)}
          </Figure>
        </>
      )}
      {saved !== null && (
        <>
          ,{' '}
          <Figure id="saved-share" value={saved}>
            {saved >= 0 ? `${percent(saved, 0)} less` : `${percent(-saved, 0)} more`}
          </Figure>{' '}
          than on demand
        </>
      )}
    </Tile>
  );
}

function lossesInWords(view: View): string {
  const parts: string[] = [];
  if (view.samples_redone !== null) parts.push(`${count(view.samples_redone)} samples redone`);
  if (view.samples_repeated !== null) parts.push(`${count(view.samples_repeated)} repeated`);
  if (view.samples_skipped !== null) parts.push(`${count(view.samples_skipped)} skipped`);
  return parts.join(', ') || dash;
}

export function RunTiles({ view }: { view: View }) {
  const now = machinesNow(view);
  const over = view.end !== null;
  return (
    <div class="tiles">
      <ProgressTile view={view} />
      <TimeTile view={view} />
      <LossTile view={view} />
      <MoneyTile view={view} />
      <Tile
        title="Preemptions"
        figure={
          <Figure id="preemptions" value={view.preemptions}>
            {whole(view.preemptions)}
          </Figure>
        }
      >
        {lossesInWords(view)}
      </Tile>
      <Tile
        title={over ? 'Machines held' : 'Machines'}
        figure={
          <Figure id="machines" value={over ? view.machines_total : now}>
            {whole(over ? view.machines_total : now)}
          </Figure>
        }
      >
        {!over && `${plural(view.machines_total, 'machine')} in all, `}
        {!over && view.usd_per_hour !== null && (
          <>
            <Figure id="usd-per-hour" value={view.usd_per_hour}>
              {usd(view.usd_per_hour)}/h
            </Figure>
            ,{' '}
          </>
        )}
        <Figure id="samples-per-s" value={view.samples_per_s}>
          {count(view.samples_per_s)}
        </Figure>{' '}
        samples/s
      </Tile>
    </div>
  );
}
