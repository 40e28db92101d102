import { count, duration, lossText, sentence, usd } from '../format';
import { Card } from '../parts/card';
import type { Num, Score, View } from '../types';

export function scoreText(score: Score, value: Num): string {
  if (score.unit === 's') return duration(value);
  if (score.unit === 'usd') return usd(value);
  return score.what === 'loss' ? lossText(value) : count(value);
}

function Kept({ kept }: { kept: boolean | null }) {
  if (kept === null) return <span class="quiet">open</span>;
  return kept ? <span class="kept">✓ kept</span> : <span class="missed">✕ missed</span>;
}

/** Promised, predicted, delivered. */
export function Scorecard({ view }: { view: View }) {
  return (
    <Card title="Scorecard">
      {view.scorecard.length === 0 ? (
        <p class="empty">Nothing was promised.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Promise</th>
              <th scope="col" class="num">
                Promised
              </th>
              <th scope="col" class="num">
                Predicted
              </th>
              <th scope="col" class="num">
                {view.end === null ? 'So far' : 'Delivered'}
              </th>
              <th scope="col">Kept</th>
            </tr>
          </thead>
          <tbody>
            {view.scorecard.map((score) => (
              <tr key={score.what} data-what={score.what}>
                <th scope="row">{sentence(score.what)}</th>
                <td class="num">{scoreText(score, score.promised)}</td>
                <td class="num">{scoreText(score, score.predicted)}</td>
                <td class="num">{scoreText(score, score.delivered)}</td>
                <td class="verdict">
                  <Kept kept={score.kept} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}
