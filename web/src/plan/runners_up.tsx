import { clusterText, duration, percent, usd } from '../format';
import { Card } from '../parts/card';
import type { Plan } from '../types';
import { sameOption } from './options';

/** The next cheapest within the deadline, and by how much they are dearer. */
export function RunnersUp({ plan }: { plan: Plan }) {
  const list = plan.runners_up ?? [];
  if (list.length === 0) return null;
  return (
    <Card title="Runners-up" aside="next cheapest within the deadline">
      <table>
        <thead>
          <tr>
            <th scope="col">Machines</th>
            <th scope="col" class="num">
              Time
            </th>
            <th scope="col" class="num">
              Cost
            </th>
            <th scope="col" class="num">
              Dearer
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map((option, i) => (
            <tr key={i}>
              <td>
                {clusterText(option)}
                {(plan.ties ?? []).some((tie) => sameOption(tie, option)) && (
                  <span class="badge">as good within the error</span>
                )}
              </td>
              <td class="num">{duration(option.time_s)}</td>
              <td class="num">{usd(option.cost_usd)}</td>
              <td class="num">
                {percent(option.cost_usd !== null && plan.cost_usd ? option.cost_usd / plan.cost_usd - 1 : null, 1)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
