// Plays mayfly dashboard with made-up answers, so that the page can be looked at without the C++ side.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { makeView } from './make_view.mjs';

const root = new URL('../', import.meta.url);
const page = () => readFileSync(new URL('dist/index.html', root), 'utf8');
const fixture = (name) => JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, root), 'utf8'));
const marker = '<script id="mayfly-document" type="application/json">null</script>';

/** The page with a document in it, as the C++ side writes it. */
export function filled(doc) {
  const html = page();
  if (html.split(marker).length !== 2)
    throw new Error('dist/index.html does not have the document element exactly once');
  return html.replace(marker, () => marker.replace('null', () => JSON.stringify(doc).replaceAll('<', '\\u003c')));
}

const runs = [
  ['survive', 'running', 'training', 40, 48000, 74000, 0.19, 0.0064, 75, true, 6],
  ['digits', 'finished', 'ended', 60.4, 80000, 80000, 0.11, 0.0131, 75, true, 9],
  ['night-run', 'lost', 'training', 7412, 1200000, 9600000, 1.42, 3.87, 21600, null, 31],
  ['count', 'failed', 'ended', 3.1, 0, 80000, null, null, null, null, 0],
].map(
  ([name, state, phase, time_s, samples, target_samples, loss, cost_usd, deadline_s, deadline_met, preemptions]) => ({
    name,
    job: name === 'night-run' ? 'resnet110' : name,
    state,
    phase,
    time_s,
    samples,
    target_samples,
    loss,
    cost_usd,
    deadline_s,
    deadline_met,
    preemptions,
    written: '2026-11-16T20:41:00Z',
  }),
);

const choices = {
  profiles: [
    { name: 'spotdnn-resnet110', losses: { from: 0.3, to: 2 }, epochs: true, pipeline: false },
    { name: 'lambda-mobilenet', losses: null, epochs: true, pipeline: false },
    { name: 'parcae-bert', losses: null, epochs: false, pipeline: true },
  ],
  catalogs: ['default', 'spotdnn'],
  traces: [
    { name: 'gcp-v100', duration_s: 1209600 },
    { name: 'drought', duration_s: 259200 },
  ],
  policies: ['on-demand', 'checkpoint', 'reactive', 'liveput', 'deadline'],
};

function planAnswer(wish) {
  const { plan } = fixture('plan');
  const { plan: refusal } = fixture('no_plan');
  const asked = {
    profile: wish.profile,
    catalog: wish.catalog,
    target: wish.loss ? { loss: wish.loss } : wish.epochs ? { epochs: wish.epochs } : { steps: wish.steps },
    deadline_s: wish.deadline_s ?? null,
    budget_usd: wish.budget_usd ?? null,
  };
  if (wish.deadline_s && wish.deadline_s < plan.frontier[0].time_s)
    return {
      ...refusal,
      ...asked,
      reason: `the fastest plan takes ${plan.frontier[0].time_s.toFixed(1)} s, the deadline leaves ${wish.deadline_s} s`,
    };
  const fit = plan.frontier.filter((one) => !wish.deadline_s || one.time_s <= wish.deadline_s).at(-1);
  return { ...plan, ...fit, ...asked };
}

/** Listens on a free port; `empty`: a dashboard without runs. */
export async function serve({ empty = false, liveMs = 1000, from_s = 20, view = {} } = {}) {
  const docs = new Map();
  let now = from_s;
  const open = new Set();
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://x').pathname;
    const json = (content, status = 200) => (
      response.writeHead(status, { 'Content-Type': 'application/json' }),
      response.end(JSON.stringify(content))
    );
    const body = (then) => {
      let text = '';
      request.on('data', (part) => (text += part)).on('end', () => then(JSON.parse(text)));
    };
    if (path === '/') return (response.writeHead(200, { 'Content-Type': 'text/html' }), response.end(page()));
    if (docs.has(path)) return (response.writeHead(200, { 'Content-Type': 'text/html' }), response.end(docs.get(path)));
    if (path === '/api/runs') return json({ runs: empty ? [] : runs });
    if (path === '/api/choices') return json(choices);
    if (path === '/api/plan') return body((wish) => json(planAnswer(wish)));
    if (path === '/api/replay')
      return body((wish) => {
        const { replay } = fixture('replay');
        json({
          ...replay,
          profile: wish.profile,
          policies: replay.policies.filter((one) => wish.policies.includes(one.policy)),
        });
      });
    if (path === '/api/runs/survive/stream') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      open.add(response);
      const send = () =>
        response.write(`event: view\ndata: ${JSON.stringify(makeView({ now_s: (now += 0.5), ...view }))}\n\n`);
      send();
      const timer = setInterval(send, liveMs);
      request.on('close', () => (clearInterval(timer), open.delete(response)));
      return;
    }
    if (path === '/api/runs/digits/stream') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      return response.end(
        `event: view\ndata: ${JSON.stringify(fixture('finished').views[0])}\n\nevent: end\ndata: {}\n\n`,
      );
    }
    json({ error: `there is nothing at ${path}` }, 404);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    put: (path, html) => docs.set(path, html),
    /** Cuts the streams, as a network does. */
    cut: () => open.forEach((response) => response.destroy()),
    close: () => {
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
}
