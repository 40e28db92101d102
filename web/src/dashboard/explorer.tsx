import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api } from '../api';
import { duration, lossText, sentence, usd, whole } from '../format';
import { Problem } from '../parts/card';
import { PlanView } from '../plan/plan_view';
import { fromStep, rounded, toStep } from '../scale';
import type { Choices, Plan } from '../types';
import { useAsked } from './asked';
import { Slider } from './slider';
import { firstStep, limits, targetOf, targetValue, wishOf, type Settings } from './wish';

const restMs = 120;
const allMarkets = ['spot', 'on-demand', 'serverless'];

function targetText(kind: string, value: number): string {
  return kind === 'loss' ? lossText(value) : whole(value);
}

function Controls({ choices }: { choices: Choices }) {
  const [name, setName] = useState((choices.profiles.find((one) => one.losses) ?? choices.profiles[0]!).name);
  const [catalog, setCatalog] = useState(choices.catalogs[0] ?? 'default');
  const [markets, setMarkets] = useState(['spot', 'on-demand']);
  const [target, setTarget] = useState<number | null>(null);
  const [deadline, setDeadline] = useState<number | null>(null);
  const [budget, setBudget] = useState<number | null>(null);
  const [budgetOn, setBudgetOn] = useState(false);
  const [plan, setPlan] = useState<Plan | null>(null);
  const [open, setOpen] = useState<Plan | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [waiting, setWaiting] = useState(false);
  const asked = useRef(0);

  const profile = choices.profiles.find((one) => one.name === name)!;
  const aim = useMemo(() => targetOf(profile), [profile]);
  const step = target ?? firstStep(aim);
  const ranges = useMemo(() => limits(open), [open]);
  const settings: Settings = {
    profile,
    catalog,
    target: targetValue(aim, step),
    deadline: open === null || deadline === null ? null : rounded(fromStep(ranges.deadline, deadline), 3),
    budget: budgetOn && budget !== null ? rounded(fromStep(ranges.budget, budget), 3) : null,
    markets,
  };
  const wish = wishOf(settings);
  const key = JSON.stringify(wish);

  // Another profile, catalogue or market has other times and prices: ask without limits first, and lay the sliders around the answer.
  useEffect(() => {
    setOpen(null);
    setDeadline(null);
  }, [name, catalog, markets]);

  useEffect(() => {
    const turn = ++asked.current;
    setWaiting(true);
    const stop = new AbortController();
    const timer = window.setTimeout(() => {
      api.plan(wish, stop.signal).then(
        (answer) => {
          if (turn !== asked.current) return;
          setPlan(answer);
          setFault(null);
          setWaiting(false);
          if (open !== null) return;
          setOpen(answer);
          const { deadline: scale, budget: money } = limits(answer);
          setDeadline(toStep(scale, Math.sqrt(scale.from * scale.to)));
          setBudget(toStep(money, Math.sqrt(money.from * money.to)));
        },
        (error: unknown) => {
          if (turn !== asked.current || stop.signal.aborted) return;
          setFault(error instanceof Error ? error.message : String(error));
          setWaiting(false);
        },
      );
    }, restMs);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [key, open === null]);

  function toggleMarket(market: string): void {
    const next = allMarkets.filter((one) => (one === market ? !markets.includes(one) : markets.includes(one)));
    if (next.length > 0) setMarkets(next);
  }

  return (
    <>
      <form class="controls" aria-label="What is wanted" onSubmit={(event) => event.preventDefault()}>
        <label>
          Profile
          <select
            value={name}
            onChange={(event) => (setName(event.currentTarget.value), setTarget(null))}
            data-testid="choose-profile"
          >
            {choices.profiles.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
        <label>
          Catalogue
          <select
            value={catalog}
            onChange={(event) => setCatalog(event.currentTarget.value)}
            data-testid="choose-catalog"
          >
            {choices.catalogs.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <fieldset>
          <legend>Markets</legend>
          {allMarkets.map((market) => (
            <label key={market} class="check">
              <input
                type="checkbox"
                checked={markets.includes(market)}
                onChange={() => toggleMarket(market)}
                data-testid={`market-${market}`}
              />
              {market}
            </label>
          ))}
        </fieldset>
        <Slider
          id="slider-deadline"
          title="Deadline"
          value={settings.deadline ?? 0}
          text={duration(settings.deadline)}
          step={deadline ?? 0}
          steps={ranges.deadline.steps}
          onStep={setDeadline}
          off={settings.deadline === null}
        />
        <Slider
          id={aim.kind === 'loss' ? 'slider-loss' : `slider-${aim.kind}`}
          title={aim.kind === 'loss' ? 'Target loss' : sentence(aim.kind)}
          value={settings.target}
          text={targetText(aim.kind, settings.target)}
          step={step}
          steps={aim.scale.steps}
          onStep={setTarget}
        />
        <Slider
          id="slider-budget"
          title="Budget"
          value={settings.budget ?? 0}
          text={usd(settings.budget)}
          step={budget ?? 0}
          steps={ranges.budget.steps}
          onStep={setBudget}
          off={!budgetOn}
        >
          <input
            type="checkbox"
            checked={budgetOn}
            aria-label="Limit the budget"
            onChange={() => setBudgetOn(!budgetOn)}
            data-testid="budget-on"
          />
        </Slider>
      </form>
      {fault && <Problem title="There is no answer to this.">{sentence(fault)}</Problem>}
      <h2 class="unseen">Answer</h2>
      <div class={waiting ? 'answer waiting' : 'answer'} aria-busy={waiting} data-testid="plan-answer">
        {plan ? (
          <PlanView plan={plan} />
        ) : (
          !fault && (
            <p class="empty" role="status">
              Planning.
            </p>
          )
        )}
      </div>
    </>
  );
}

/** Drag a promise and see what it takes. */
export function Explorer() {
  const { answer, fault, again } = useAsked(api.choices);
  return (
    <>
      <div class="title">
        <h1>Plan</h1>
        <span class="quiet">what a promise takes</span>
      </div>
      {fault && (
        <Problem title="The choices cannot be read.">
          {fault}{' '}
          <button type="button" class="chip" onClick={again}>
            try again
          </button>
        </Problem>
      )}
      {answer && answer.profiles.length === 0 && <Problem title="There are no profiles to plan with." />}
      {answer && answer.profiles.length > 0 && <Controls choices={answer} />}
    </>
  );
}
