import { clusterText, duration, marketsText, percent, serversText, usd } from '../format';
import { Card } from '../parts/card';
import type { Option, Plan } from '../types';
import { sameOption } from './options';

function price(option: Option): number | null {
  const lines = [...(option.cluster ?? []), ...(option.servers ?? [])];
  if (lines.length === 0 || lines.some((line) => line.usd_per_hour === null)) return null;
  return lines.reduce((sum, line) => sum + line.n * (line.usd_per_hour ?? 0), 0);
}

function Row({ option, plan, chance }: { option: Option; plan: Plan; chance: boolean }) {
  const chosen = sameOption(option, plan);
  return (
    <tr class={chosen ? 'chosen' : undefined}>
      <th scope="row">
        {clusterText(option)}
        {serversText(option) && <span class="quiet small"> + {serversText(option)}</span>}
        {chosen && <span class="badge">chosen</span>}
      </th>
      <td>{marketsText(option)}</td>
      <td class="num">{usd(price(option))}</td>
      <td class="num">{duration(option.time_s)}</td>
      {plan.deadline_s !== null && (
        <td class="num">{duration(option.time_s === null ? null : plan.deadline_s - option.time_s)}</td>
      )}
      <td class="num">{usd(option.cost_usd)}</td>
      {chance && <td class="num">{percent(option.deadline_probability, 0)}</td>}
    </tr>
  );
}

/** The chosen option beside the best of each kind alone. */
export function Considered({ plan }: { plan: Plan }) {
  const list = plan.considered ?? [];
  if (list.length === 0) return null;
  const chance = list.some((option) => option.deadline_probability != null);
  return (
    <Card title="Considered" wide aside="the best mix, and the best of each kind alone">
      <div class="scroll" tabIndex={0} role="region" aria-label="Considered clusters">
        <table>
          <thead>
            <tr>
              <th scope="col">Machines</th>
              <th scope="col">Market</th>
              <th scope="col" class="num">
                USD/h
              </th>
              <th scope="col" class="num">
                Time
              </th>
              {plan.deadline_s !== null && (
                <th scope="col" class="num">
                  Slack
                </th>
              )}
              <th scope="col" class="num">
                Cost
              </th>
              {chance && (
                <th scope="col" class="num">
                  In time
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {list.map((option, i) => (
              <Row key={i} option={option} plan={plan} chance={chance} />
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
