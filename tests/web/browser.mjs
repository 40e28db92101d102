// What people see, in a real browser: browser.mjs path/to/mayfly [case] [--shots DIR]
// Reports and the dashboard are opened in chromium; figures on the screen must be those of the files.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const need = createRequire(join(root, 'web/package.json'));
const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
if (!chromium) {
  console.log('skipped: no chromium here (apt-get install chromium)');
  process.exit(77);
}
const { chromium: browserType } = need('playwright-core');
const axe = readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8');

const words = process.argv.slice(2);
const shotsAt = words.indexOf('--shots');
const shots = shotsAt >= 0 ? resolve(words.splice(shotsAt, 2)[1]) : null;
const mayfly = resolve(words[0]);
const only = words[1];

function expect(holds, what) {
  if (!holds) throw new Error(what);
}
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
/** Ends a hang; nothing is meant to take so long. */
const LIMIT_MS = 60_000;
async function until(what, question) {
  for (const end = Date.now() + LIMIT_MS; Date.now() < end; await sleep(100)) {
    const answer = await question();
    if (answer) return answer;
  }
  throw new Error(`waited ${LIMIT_MS / 1000} s for ${what}`);
}

function call(...args) {
  const done = spawnSync(mayfly, args, { encoding: 'utf8', timeout: LIMIT_MS, cwd: place });
  expect(done.status === 0, `mayfly ${args.join(' ')}: ${done.status} ${done.stderr}`);
  return done.stdout;
}

const place = mkdtempSync(join(tmpdir(), 'mayfly-web-'));
const json = (path) => JSON.parse(readFileSync(join(place, path), 'utf8'));

/** A page that fails the test on the first thing it complains about. */
async function opened(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && page.complaints.push(message.text()));
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('request', (request) => {
    const allowed = request.url().startsWith('data:') || request.url().startsWith(new URL(address).origin) || address.startsWith('file:') && request.url() === address;
    if (!allowed) page.complaints.push(`asked for ${request.url()}`);
  });
  await page.goto(address, { waitUntil: 'load' });
  return page;
}

const figure = async (page, id) => {
  const value = await page.locator(`[data-testid="${id}"]`).first().getAttribute('data-value', { timeout: LIMIT_MS });
  return value === null || value === '' ? null : Number(value);
};

async function is_accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ['violations'] })).violations
    .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ')).join('; ')}`));
  expect(found.length === 0, `${what}: ${found.join('\n')}`);
}

async function fits(page, what) {
  const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  expect(wide <= room, `${what}: ${wide} px wide, the screen has ${room}`);
}

async function seen(page, name) {
  expect(page.complaints.length === 0, `${name}: ${page.complaints.join('\n')}`);
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

const JOB = (epochs) => `name: count
objective: {epochs: ${epochs}, deadline: 10m}
train:
  model: {name: count}
  data: {name: count, samples: 20000}
  optimiser: {kind: sgd, rate: 1}
  reduction: sum
  batch: 100
  checkpoint: {every: 1s}
`;

/** A dashboard of the folder, and its address. */
function dashboard(...flags) {
  const child = spawn(mayfly, ['dashboard', 'mayfly-runs', '--port', '0', ...flags], { cwd: place, stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((done, fail) => {
    child.stdout.once('data', (text) => done({ child, address: String(text).trim() }));
    child.once('exit', (code) => fail(new Error(`dashboard ended with ${code}`)));
  });
}

const cases = {
  /** A real run, then its report: light, dark, on a phone. */
  async report_of_a_run(browser) {
    writeFileSync(join(place, 'job.yaml'), JOB(3));
    call('run', 'job.yaml', '--workers', '2', '--as', 'g4dn.xlarge=2', '--out', 'mayfly-runs/done', '-y');
    call('report', 'mayfly-runs/done', '-o', 'run.html', '--svg', 'svg', '--csv', 'csv', '--tensorboard', 'tb');
    const summary = json('mayfly-runs/done/summary.json');
    const address = `file://${place}/run.html`;
    for (const [name, options] of Object.entries({
      light: {}, dark: { colorScheme: 'dark' }, phone: { viewport: { width: 375, height: 800 }, isMobile: true, hasTouch: true },
    })) {
      const page = await opened(browser, address, options);
      expect((await figure(page, 'samples')) === summary.samples, 'samples are not those of the summary');
      expect((await figure(page, 'preemptions')) === summary.preemptions, 'preemptions are not those of the summary');
      expect(Math.abs((await figure(page, 'cost-usd')) - summary.cost_usd) < 1e-9, 'the cost is not that of the summary');
      expect((await figure(page, 'time-s')) === summary.time_s, 'the time is not that of the summary');
      await fits(page, name);
      await is_accessible(page, name);
      await seen(page, `report-${name}`);
      await page.context().close();
    }
    for (const file of ['svg/progress.svg', 'csv/happenings.csv']) expect(existsSync(join(place, file)), `no ${file}`);
  },

  /** Plans, also the answer "no", and a replay, as reports. */
  async report_of_answers(browser) {
    const plan = (...flags) => spawnSync(mayfly, ['plan', '--profile', 'spotdnn-resnet110', '--loss', '0.8', '-o', 'plan.json', ...flags], { cwd: place });
    plan('--deadline', '45m');
    call('report', 'plan.json', '-o', 'plan.html');
    let page = await opened(browser, `file://${place}/plan.html`);
    expect(Math.abs((await figure(page, 'plan-cost-usd')) - json('plan.json').cost_usd) < 1e-9, 'another cost than the plan');
    await is_accessible(page, 'plan');
    await seen(page, 'report-plan');
    plan('--deadline', '1m');
    call('report', 'plan.json', '-o', 'no.html');
    page = await opened(browser, `file://${place}/no.html`);
    expect((await page.locator('body').innerText()).toLowerCase().includes(json('plan.json').reason), 'the reason is not shown');
    await seen(page, 'report-no-plan');
    writeFileSync(join(place, 'replay.json'), call('replay', '--profile', 'parcae-bert', '--trace', 'gcp-v100', '--policy', 'checkpoint,reactive,liveput', '--json'));
    call('report', 'replay.json', '-o', 'replay.html');
    page = await opened(browser, `file://${place}/replay.html`);
    for (const policy of ['checkpoint', 'reactive', 'liveput']) expect((await page.getByText(policy).count()) > 0, `no ${policy}`);
    await is_accessible(page, 'replay');
    await seen(page, 'report-replay');
  },

  /** A run that is going on: its figures rise, and a worker that is killed appears as a preemption. */
  async live_run(browser) {
    writeFileSync(join(place, 'job.yaml'), JOB(1_000_000));
    call('run', 'job.yaml', '--workers', '2', '--out', 'mayfly-runs/live', '-y', '-d');
    const { child, address } = await dashboard();
    try {
      const page = await opened(browser, address);
      await page.getByText('live', { exact: true }).first().click({ timeout: LIMIT_MS });
      await until('samples', async () => (await figure(page, 'samples')) > 0);
      const before = await figure(page, 'samples');
      await until('more samples', async () => (await figure(page, 'samples')) > before);
      const workers = json('mayfly-runs/live/processes.json').workers;
      process.kill(workers[0].pid, 'SIGKILL');
      await until('the preemption on the screen', async () => (await figure(page, 'preemptions')) === 1);
      expect((await page.locator('[data-kind="lost"]').count()) >= 1, 'the loss is not in the list');
      await until('the new worker', async () => (await page.locator('[data-kind="joined"]').count()) >= 3);
      await is_accessible(page, 'live run');
      await seen(page, 'live');
      call('stop', 'mayfly-runs/live');
      await until('the end', async () => (await page.locator('[data-testid="state"]').first().innerText()).toLowerCase().includes('stopped'));
      const summary = json('mayfly-runs/live/summary.json');
      await until('the last samples', async () => (await figure(page, 'samples')) === summary.samples);
      await seen(page, 'live-ended');
    } finally {
      child.removeAllListeners('exit');
      child.kill();
      spawnSync(mayfly, ['stop', 'mayfly-runs/live'], { cwd: place });
    }
  },

  /** The planner under sliders, with keys and without a mouse; what it shows is what the command line says. */
  async plan_explorer(browser) {
    mkdirSync(join(place, 'mayfly-runs'), { recursive: true });
    const { child, address } = await dashboard();
    try {
      const page = await opened(browser, `${address}#/plan`);
      await page.getByTestId('choose-profile').selectOption('spotdnn-resnet110', { timeout: LIMIT_MS });
      await page.getByTestId('choose-catalog').selectOption('spotdnn'); // five types: an answer in milliseconds
      const cost = await until('a plan', () => figure(page, 'plan-cost-usd').catch(() => null));
      const slider = page.getByTestId('slider-deadline');
      await slider.focus();
      for (let i = 0; i < 15; ++i) await page.keyboard.press('ArrowLeft');
      const asked = await until('another plan', async () => {
        const now = await figure(page, 'plan-cost-usd').catch(() => null);
        return now !== null && now !== cost ? now : null;
      });
      expect(asked > 0, 'no cost');
      const deadline = await figure(page, 'slider-deadline');
      const loss = await figure(page, 'slider-loss');
      const told = JSON.parse(call('plan', '--profile', 'spotdnn-resnet110', '--catalog', 'spotdnn', '--loss', String(loss), '--deadline', String(deadline), '--json'));
      await until('the plan of the command line', async () => Math.abs((await figure(page, 'plan-cost-usd')) - told.cost_usd) < 1e-6 * told.cost_usd);
      await is_accessible(page, 'explorer');
      await seen(page, 'explorer');
      await page.goto(`${address}#/weather`);
      await until('the weather', async () => (await page.getByTestId('replay-answer').count()) > 0);
      await sleep(500);
      await is_accessible(page, 'weather');
      await seen(page, 'weather');
    } finally {
      child.removeAllListeners('exit');
      child.kill();
    }
  },

  /** Beyond loopback the token of the printed address opens the page, and leaves the address bar. */
  async token(browser) {
    mkdirSync(join(place, 'mayfly-runs'), { recursive: true });
    const { child, address } = await dashboard('--host', '0.0.0.0');
    try {
      expect(address.includes('?token='), 'no token in the address');
      const local = address.replace('0.0.0.0', '127.0.0.1');
      const page = await opened(browser, local);
      await until('the list', async () => (await page.locator('body').innerText()).length > 20);
      expect(!page.url().includes('token='), 'the token stays in the address bar');
      await seen(page, 'token');
      expect((await fetch(`${local.split('/?')[0]}/api/runs`)).status === 401, 'answered without the token');
    } finally {
      child.removeAllListeners('exit');
      child.kill();
    }
  },
};

const browser = await browserType.launch({
  executablePath: chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
});
let passed = 0;
let failed = 0;
for (const [name, test] of Object.entries(cases)) {
  if (only && only !== name) continue;
  const start = Date.now();
  try {
    await test(browser);
    passed += 1;
    console.log(`ok ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
  }
}
await browser.close();
rmSync(place, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
