// What looking costs and how soon it shows: bench/dashboard.mjs path/to/mayfly [--events 10] [--seconds 10]
// A real run with two workers, a real dashboard, a real browser; wrk for the load (apt-get install wrk).
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const { chromium } = createRequire(join(root, 'web/package.json'))('playwright-core');
const mayfly = resolve(process.argv[2]);
const flag = (name, otherwise) => {
  const at = process.argv.indexOf(name);
  return at > 0 ? Number(process.argv[at + 1]) : otherwise;
};
const events = flag('--events', 10);
const seconds = flag('--seconds', 10);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const sorted = (list) => [...list].sort((a, b) => a - b);
const middle = (list) => sorted(list)[Math.floor(list.length / 2)];
const place = mkdtempSync(join(tmpdir(), 'mayfly-bench-'));
const run = join(place, 'mayfly-runs/live');
const call = (...args) => spawnSync(mayfly, args, { cwd: place, encoding: 'utf8' });
const status = () => JSON.parse(readFileSync(join(run, 'status.json'), 'utf8'));
const processes = () => JSON.parse(readFileSync(join(run, 'processes.json'), 'utf8'));

/** CPU seconds of a process so far; 0 for one that is gone. */
function cpu(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return 0;
  }
}
const run_cpu = () => [processes().controller, ...processes().workers.map((one) => one.pid)].reduce((sum, pid) => sum + cpu(pid), 0);

function started(folder) {
  const child = spawn(mayfly, ['dashboard', folder, '--port', '0'], { cwd: place, stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((done) => child.stdout.once('data', (text) => done({ child, address: String(text).trim() })));
}

/** From the kill of a worker to the figure on the screen. */
async function latency(browser, address) {
  const page = await browser.newPage();
  await page.goto(`${address}#/runs/live`);
  await page.waitForSelector('[data-testid="preemptions"]');
  const seen = () => page.locator('[data-testid="preemptions"]').first().getAttribute('data-value').then(Number);
  const times = [];
  for (let i = 0; i < events; ++i) {
    const working = () => status().machines.filter((one) => one.state === 'training' && one.pid > 0);
    while (working().length < 2) await sleep(100);
    await sleep(500 + 137 * (i % 7)); // at no particular moment of the dashboard's own rhythm
    const before = await seen();
    const shown = page.evaluate((value) => new Promise((done) => {
      const look = () => {
        const now = Number(document.querySelector('[data-testid="preemptions"]')?.getAttribute('data-value'));
        if (now > value) requestAnimationFrame(() => done(Date.now()));
        else setTimeout(look, 5);
      };
      look();
    }), before);
    const killed = Date.now();
    process.kill(working()[0].pid, 'SIGKILL');
    times.push(((await shown) - killed) / 1000);
  }
  console.log(`event to screen, s: median ${middle(times).toFixed(2)}, worst ${Math.max(...times).toFixed(2)} of ${times.length}`);
  return page;
}

/** CPU time of the dashboard with one viewer, as a share of the run's. */
async function share(pid) {
  const [mine, theirs] = [cpu(pid), run_cpu()];
  await sleep(seconds * 1000);
  const looked = cpu(pid) - mine;
  const trained = run_cpu() - theirs;
  console.log(`CPU time of the dashboard, one viewer: ${looked.toFixed(2)} s of the run's ${trained.toFixed(2)} s = ${((100 * looked) / trained).toFixed(2)} %`);
}

async function speed() {
  const [before, start] = [status(), Date.now()];
  await sleep(seconds * 1000);
  const after = status();
  return (after.samples - before.samples) / (after.time_s - before.time_s || (Date.now() - start) / 1000);
}

/** Requests per second and p99 while the run goes on, and what that does to the run. */
async function load(address) {
  const quiet = await speed();
  for (const path of ['healthz', 'api/runs', 'api/runs/live', 'metrics']) {
    const wrk = spawn('wrk', ['-t1', '-c8', `-d${seconds}s`, '--latency', `${address}${path}`]);
    let text = '';
    wrk.stdout.on('data', (part) => (text += part));
    const busy = await speed();
    await new Promise((done) => (wrk.exitCode === null ? wrk.once('close', done) : done()));
    const rate = /Requests\/sec:\s+([\d.]+)/.exec(text)?.[1];
    const p99 = /^\s+99%\s+(\S+)/m.exec(text)?.[1];
    const wrong = /Non-2xx.*/.exec(text)?.[0] ?? '';
    console.log(`wrk, 8 connections, /${path}: ${rate} requests/s, p99 ${p99} ${wrong}; the run at ${(busy / quiet).toFixed(2)} of its speed`);
  }
}

/** 100,000 lines, and more every 100 ms. */
async function long_journal(browser) {
  const folder = join(place, 'long');
  mkdirSync(folder);
  writeFileSync(join(folder, 'request.json'), '{}');
  const journal = join(folder, 'journal.jsonl');
  let text = '{"format":"mayfly-journal/1","job":"long"}\n';
  let worker = 0;
  const line = (t) => {
    worker += 1;
    return `{"t_s":${t},"event":"joined","worker":"w${worker}","type":"${worker % 2 ? 'a' : 'b'}","zone":"","market":"spot","usd_per_hour":0.5}\n` +
      `{"t_s":${t},"command":"assign","generation":${worker},"data_parallel":1,"stages":1,"next_sample":${worker * 10},"members":["w${worker}"],"why":"fastest shape for the machines there are"}\n` +
      `{"t_s":${t + 1},"event":"committed","generation":${worker},"first_sample":${worker * 10},"samples":10}\n` +
      `{"t_s":${t + 1},"reading":"training","sample":${worker * 10},"loss":${(1 + 2 / Math.sqrt(worker)).toFixed(4)}}\n` +
      (worker > 16 ? `{"t_s":${t + 2},"event":"lost","worker":"w${worker - 16}"}\n` : '');
  };
  while (worker < 20_000) text += line(worker * 3);
  writeFileSync(journal, text);
  const { child, address } = await started(folder);
  const begin = Date.now();
  const view = await (await fetch(`${address}api/runs/long`)).text();
  console.log(`100,000 lines: first view after ${((Date.now() - begin) / 1000).toFixed(2)} s, ${(view.length / 1000).toFixed(0)} kB`);
  const page = await browser.newPage();
  const opening = Date.now();
  await page.goto(`${address}#/runs/long`);
  await page.waitForSelector('[data-kind="lost"]');
  console.log(`  page drawn after ${((Date.now() - opening) / 1000).toFixed(2)} s`);
  const gaps = page.evaluate((ms) => new Promise((done) => {
    const list = [];
    let last = performance.now();
    const end = last + ms;
    const frame = (now) => {
      list.push(now - last);
      last = now;
      if (now < end) requestAnimationFrame(frame);
      else done(list);
    };
    requestAnimationFrame(frame);
  }), seconds * 1000);
  const writer = setInterval(() => appendFileSync(journal, line(worker * 3)), 100);
  const frames = sorted(await gaps);
  clearInterval(writer);
  const at = (share) => frames[Math.min(frames.length - 1, Math.floor(share * frames.length))].toFixed(1);
  console.log(`  while it grows: ${(frames.length / seconds).toFixed(0)} frames/s; time between frames, ms: median ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)}, worst ${at(1)}`);
  child.kill();
}

mkdirSync(run, { recursive: true });
rmSync(run, { recursive: true });
writeFileSync(join(place, 'job.yaml'), `name: digits
objective: {epochs: 100000}
train:
  model: {name: resnet, depth: 8}
  data: {name: digits, samples: 4000}
  optimiser: {kind: sgd, rate: 0.05}
  batch: 64
`);
const begun = call('run', 'job.yaml', '--workers', '2', '--out', run, '-y', '-d');
if (begun.status !== 0) throw new Error(begun.stderr);
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
});
const { child, address } = await started(join(place, 'mayfly-runs'));
try {
  const page = await latency(browser, address);
  await share(child.pid);
  await page.close();
  await load(address);
  call('stop', run);
  await long_journal(browser);
} finally {
  child.kill();
  call('stop', run);
  await browser.close();
  rmSync(place, { recursive: true, force: true });
}
