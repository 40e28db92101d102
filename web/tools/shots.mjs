// node tools/shots.mjs FOLDER [NAME...]: pictures of every page, light, dark and on a phone; fails on what the console or axe complains of.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { openBrowser } from './browser.mjs';
import { filled, serve } from './mock_server.mjs';

const [folder, ...names] = process.argv.slice(2);
if (!folder) throw new Error('usage: node tools/shots.mjs FOLDER [NAME...]');
mkdirSync(folder, { recursive: true });

const root = new URL('../', import.meta.url);
const axe = readFileSync(new URL('node_modules/axe-core/axe.min.js', root), 'utf8');
const looks = [
  { look: 'light', colorScheme: 'light', viewport: { width: 1360, height: 900 } },
  { look: 'dark', colorScheme: 'dark', viewport: { width: 1360, height: 900 } },
  { look: 'phone', colorScheme: 'light', viewport: { width: 375, height: 760 }, deviceScaleFactor: 2 },
];

const server = await serve();
const pages = readdirSync(new URL('fixtures/', root)).map((file) => {
  const name = file.replace('.json', '');
  server.put(`/report/${name}`, filled(JSON.parse(readFileSync(new URL(`fixtures/${file}`, root), 'utf8'))));
  return { name, path: `/report/${name}`, wait: 'h1' };
});
server.put('/report/broken', filled({ format: 'mayfly-report/1', views: [{}] }));
pages.push(
  { name: 'broken', path: '/report/broken', wait: '[role=alert]' },
  { name: 'runs', path: '/#/runs', wait: '.run-row' },
  { name: 'live', path: '/#/runs/survive', wait: '.plot canvas' },
  {
    name: 'explorer',
    path: '/#/plan',
    wait: '.frontier svg',
    act: async (page) => {
      await page.waitForSelector('#slider-deadline:not([disabled])');
      await page.focus('.dot[aria-label*="chosen"]');
    },
  },
  {
    name: 'weather',
    path: '/#/weather',
    wait: '.plot canvas',
    act: async (page) => {
      await page.locator('.player input').fill('620');
    },
  },
);

const browser = await openBrowser();
let faults = 0;
const complain = (where, what) => (faults++, console.error(`${where}: ${what}`));
try {
  for (const { look, ...context } of looks) {
    const session = await browser.newContext({ ...context, reducedMotion: 'reduce' });
    for (const { name, path, wait, act } of pages) {
      if (names.length > 0 && !names.includes(name)) continue;
      const where = `${name} ${look}`;
      const page = await session.newPage();
      page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complain(where, message.text()));
      page.on('pageerror', (error) => complain(where, error.message));
      await page.goto(server.url + path);
      await page.waitForSelector(wait);
      await act?.(page);
      await page.waitForTimeout(300);
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (wide > 0) complain(where, `scrolls sideways by ${wide} px`);
      await page.screenshot({ path: `${folder}/${name}-${look}.png`, fullPage: true });
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      for (const one of violations)
        complain(
          where,
          `${one.id}: ${one.help}: ${one.nodes
            .slice(0, 3)
            .map((node) => `${node.target.join(' ')} ${node.any[0]?.message ?? ''}`)
            .join(' | ')}`,
        );
      await page.close();
    }
    await session.close();
  }
} finally {
  await browser.close();
  await server.close();
}
if (faults > 0) {
  console.error(`${faults} faults`);
  process.exit(1);
}
console.log('no faults');
