import { useEffect, useState } from 'preact/hooks';
import { api } from '../api';
import { duration } from '../format';
import { Problem } from '../parts/card';
import { replayEnd, ReplayView } from '../replay/replay_view';
import type { Choices, Replay } from '../types';
import { useAsked } from './asked';
import { Player } from './player';

const usual = ['on-demand', 'checkpoint', 'reactive', 'liveput'];

function Controls({ choices }: { choices: Choices }) {
  const able = choices.profiles.filter((one) => one.pipeline);
  const profiles = able.length > 0 ? able : choices.profiles;
  const known = usual.filter((one) => choices.policies.includes(one));
  const [profile, setProfile] = useState((profiles.find((one) => one.name === 'parcae-bert') ?? profiles[0]!).name);
  const [trace, setTrace] = useState(
    (choices.traces.find((one) => one.name === 'gcp-v100') ?? choices.traces[0]!).name,
  );
  const [policies, setPolicies] = useState(known.length > 0 ? known : choices.policies.slice(0, 4));
  const [replay, setReplay] = useState<Replay | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [waiting, setWaiting] = useState(false);
  const [until, setUntil] = useState<number | null>(null);

  useEffect(() => {
    if (policies.length === 0) return;
    const stop = new AbortController();
    setWaiting(true);
    api.replay({ profile, trace, policies }, stop.signal).then(
      (answer) => (setReplay(answer), setFault(null), setUntil(null), setWaiting(false)),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        setFault(error instanceof Error ? error.message : String(error));
        setWaiting(false);
      },
    );
    return () => stop.abort();
  }, [profile, trace, policies]);

  function toggle(policy: string): void {
    setPolicies(choices.policies.filter((one) => (one === policy ? !policies.includes(one) : policies.includes(one))));
  }

  return (
    <>
      <form class="controls" aria-label="What is replayed" onSubmit={(event) => event.preventDefault()}>
        <label>
          Profile
          <select
            value={profile}
            onChange={(event) => setProfile(event.currentTarget.value)}
            data-testid="choose-profile"
          >
            {profiles.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
        <label>
          Trace
          <select value={trace} onChange={(event) => setTrace(event.currentTarget.value)} data-testid="choose-trace">
            {choices.traces.map((one) => (
              <option key={one.name} value={one.name}>
                {one.name} ({duration(one.duration_s)})
              </option>
            ))}
          </select>
        </label>
        <fieldset>
          <legend>Policies</legend>
          {choices.policies.map((policy) => (
            <label key={policy} class="check">
              <input
                type="checkbox"
                checked={policies.includes(policy)}
                onChange={() => toggle(policy)}
                data-testid={`policy-${policy}`}
              />
              {policy}
            </label>
          ))}
        </fieldset>
      </form>
      {policies.length === 0 && <p class="empty">Choose at least one policy.</p>}
      {fault && <Problem title="This cannot be replayed.">{fault}</Problem>}
      {replay === null && !fault && policies.length > 0 && (
        <p class="empty" role="status">
          Replaying.
        </p>
      )}
      {replay && (
        <div class={waiting ? 'answer waiting' : 'answer'} aria-busy={waiting} data-testid="replay-answer">
          <h2 class="unseen">Replay</h2>
          <Player end={replayEnd(replay)} until={until} onUntil={setUntil} />
          <ReplayView replay={replay} until={until} />
        </div>
      )}
    </>
  );
}

/** Policies sent through recorded weather. */
export function WeatherPage() {
  const { answer, fault, again } = useAsked(api.choices);
  const usable = answer && answer.profiles.length > 0 && answer.traces.length > 0 && answer.policies.length > 0;
  return (
    <>
      <div class="title">
        <h1>Weather</h1>
        <span class="quiet">policies on recorded spot capacity</span>
      </div>
      {fault && (
        <Problem title="The choices cannot be read.">
          {fault}{' '}
          <button type="button" class="chip" onClick={again}>
            try again
          </button>
        </Problem>
      )}
      {answer && !usable && <Problem title="There are no profiles or no traces to replay." />}
      {answer && usable && <Controls choices={answer} />}
    </>
  );
}
