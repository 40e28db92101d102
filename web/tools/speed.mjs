// node tools/speed.mjs: script time of one live update at full size (1,500 points, 500 happenings, hundreds of machines). Fails above 16 ms.
import { openBrowser } from './browser.mjs';
import { serve } from './mock_server.mjs';

const limitMs = 16;
const updates = 12;
const everyMs = 700;
const server = await serve({
  liveMs: everyMs,
  from_s: 70,
  view: { points: 1500, places: 24, life_s: 3, end_s: 90, listed: 500 },
});
const browser = await openBrowser();
try {
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
  await page.goto(`${server.url}/#/runs/survive`);
  await page.waitForSelector('.plot canvas');
  await page.waitForTimeout(3 * everyMs);
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const script = async () =>
    (await session.send('Performance.getMetrics')).metrics.find((one) => one.name === 'ScriptDuration').value;
  const canvases = await page.evaluate(() => (window.seen = [...document.querySelectorAll('canvas')]).length);
  const before = await script();
  await page.waitForTimeout(updates * everyMs);
  const each = (((await script()) - before) * 1000) / updates;
  const same = await page.evaluate(() => window.seen.every((one) => one.isConnected));
  const bars = await page.locator('.legend.below').innerText();
  console.log(
    `${bars.split('\n')[0]}: ${each.toFixed(1)} ms of script an update, ${canvases} charts, ${same ? 'none made anew' : 'MADE ANEW'}`,
  );
  if (each > limitMs || !same) process.exitCode = 1;
} finally {
  await browser.close();
  await server.close();
}
