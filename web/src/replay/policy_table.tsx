import { wheelColour } from '../colours';
import { count, percent, usd, whole } from '../format';
import { Card } from '../parts/card';
import { Figure } from '../parts/tile';
import { largest } from '../series';
import type { Replay } from '../types';
import { samplesAt, usdPerMillion } from './figures';

/** Policies beside each other, with a bar for how far each has come. */
export function PolicyTable({ replay, until }: { replay: Replay; until: number | null }) {
  const most = largest(replay.policies.map((one) => one.samples)) ?? 1;
  const ideal = replay.policies.some((one) => one.share_of_ideal != null);
  const shares = replay.policies.some((one) => one.share);
  return (
    <Card title="Policies" aside={replay.sight ? `${replay.sight} decisions` : undefined}>
      <div class="scroll" tabIndex={0} role="region" aria-label="Figures of the policies">
        <table class="policies">
          <thead>
            <tr>
              <th scope="col">Policy</th>
              <th scope="col" class="num">
                Samples
              </th>
              <td class="bar-head" />
              {ideal && (
                <th scope="col" class="num">
                  Of ideal
                </th>
              )}
              <th scope="col" class="num">
                Cost
              </th>
              <th scope="col" class="num">
                USD/M samples
              </th>
              {shares &&
                ['Useful', 'Redundant', 'Reconf.', 'Lost', 'Idle'].map((word) => (
                  <th key={word} scope="col" class="num">
                    {word}
                  </th>
                ))}
              <th scope="col" class="num">
                Preemptions
              </th>
              <th scope="col" class="num">
                Changes
              </th>
            </tr>
          </thead>
          <tbody>
            {replay.policies.map((one, i) => {
              const now = samplesAt(one, until);
              return (
                <tr key={one.policy} data-policy={one.policy}>
                  <th scope="row">
                    <span class="spot" style={{ background: wheelColour(i) }} />
                    {one.policy}
                  </th>
                  <td class="num">
                    <Figure id={`samples-${one.policy}`} value={one.samples}>
                      {count(now)}
                    </Figure>
                  </td>
                  <td class="bar-cell" aria-hidden="true">
                    <span style={{ width: `${(100 * (now ?? 0)) / most}%`, background: wheelColour(i) }} />
                  </td>
                  {ideal && <td class="num">{percent(one.share_of_ideal, 2)}</td>}
                  <td class="num">
                    <Figure id={`cost-usd-${one.policy}`} value={one.cost_usd}>
                      {usd(one.cost_usd)}
                    </Figure>
                  </td>
                  <td class="num">{usd(usdPerMillion(one))}</td>
                  {shares &&
                    (['useful', 'redundant', 'reconfigure', 'lost', 'idle'] as const).map((key) => (
                      <td key={key} class="num">
                        {percent(one.share?.[key])}
                      </td>
                    ))}
                  <td class="num">{whole(one.preemptions)}</td>
                  <td class="num">{whole(one.changes)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
