// node tools/behaviour.mjs: drives the dashboard by keyboard and cuts its connection. Fails where the page does not do what it should.
import assert from 'node:assert/strict';
import { openBrowser } from './browser.mjs';
import { serve } from './mock_server.mjs';

const server = await serve({ liveMs: 300 });
const empty = await serve({ empty: true });
const browser = await openBrowser();
const value = (page, id) => page.getAttribute(`[data-testid="${id}"]`, 'data-value');
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  page.setDefaultTimeout(10000);
  page.on('pageerror', (error) => assert.fail(error.message));

  await page.goto(`${empty.url}/?token=secret#/runs`);
  await page.getByText('No runs yet').waitFor();
  assert(!page.url().includes('secret'), 'the token is not left in the address');
  const asked = page.waitForRequest('**/api/choices');
  await page.getByRole('link', { name: 'Plan' }).click();
  assert.equal(await (await asked).headerValue('authorization'), 'Bearer secret');

  await page.goto(`${server.url}/#/runs`);
  await page.getByRole('link', { name: /survive/ }).click();
  await page.waitForSelector('[data-testid=link][data-value=live]');
  const before = Number(await value(page, 'time-s'));
  await page.waitForFunction((t) => Number(document.querySelector('[data-testid="time-s"]').dataset.value) > t, before);

  await page.locator('.mark[tabindex="0"]').first().focus();
  await page.locator('[role=tooltip]').waitFor();
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.locator('.mark:focus').count(), 1);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('[role=tooltip]').count(), 0);

  await page.getByRole('button', { name: /^lost/ }).click();
  assert.deepEqual(
    [...new Set(await page.locator('.happenings li').evaluateAll((rows) => rows.map((row) => row.dataset.kind)))],
    ['lost'],
  );

  // A mouse that comes to lie over a chart, or leaves one, when the page scrolls moves the cursor as well.
  await page.mouse.move(2, 2);
  await page.locator('.plot').first().focus();
  await page.keyboard.press('ArrowRight');
  await page
    .getByText(/^at \d/)
    .first()
    .waitFor();

  const spans = () => page.locator('[data-time]').allInnerTexts();
  assert.equal(new Set(await spans()).size, 1, 'charts share their cursor');
  await page.keyboard.press('Escape');
  assert.equal((await spans()).join(''), '');

  const plot = await page.locator('.plot .u-over').first().boundingBox();
  const marks = () =>
    page
      .locator('.mark')
      .first()
      .evaluate((mark) => mark.style.left);
  const whole = await marks();
  await page.mouse.move(plot.x + 20, plot.y + 20);
  await page.mouse.down();
  await page.mouse.move(plot.x + 220, plot.y + 20);
  await page.mouse.up();
  await page.waitForFunction((left) => document.querySelector('.mark').style.left !== left, whole);
  await page.mouse.dblclick(plot.x + 300, plot.y + 20);
  await page.waitForFunction(
    (left) => Math.abs(parseFloat(document.querySelector('.mark').style.left) - parseFloat(left)) < 30,
    whole,
  );

  await page.getByRole('button', { name: 'Switch to dark' }).click();
  await page.waitForSelector('[data-theme=dark] .plot canvas');

  await page.goto(`${server.url}/#/plan`);
  await page.waitForSelector('#slider-deadline:not([disabled])');
  await page.waitForSelector('[data-feasible=true]');
  await page.focus('#slider-deadline');
  await page.keyboard.press('Home');
  await page.waitForSelector('[data-feasible=false]');
  assert.equal(await value(page, 'plan-binding'), 'deadline');
  await page.keyboard.press('End');
  await page.waitForSelector('[data-feasible=true]');
  assert(Number(await value(page, 'plan-cost-usd')) > 0);
  await page.getByTestId('budget-on').check();
  await page.waitForSelector('#slider-budget:not([disabled])');

  await page.goto(`${server.url}/#/weather`);
  await page.getByTestId('play').click();
  await page.waitForSelector('.curtain:not([hidden])');
  await page.getByTestId('play').click();

  await page.goto(`${server.url}/#/runs/nobody`);
  await page.getByText('there is nothing at /api/runs/nobody').waitFor();

  await page.goto(`${server.url}/#/runs/digits`);
  await page.waitForSelector('[data-testid=link][data-value=over]');

  await page.goto(`${server.url}/#/runs/survive`);
  await page.waitForSelector('[data-testid=link][data-value=live]');
  server.cut();
  await page.waitForSelector('[data-testid=link][data-value=lost]');
  assert(await page.locator('[data-testid=samples]').isVisible(), 'the last view stays');
  await page.waitForSelector('[data-testid=link][data-value=live]');
  await server.close();
  await page.waitForSelector('[data-testid=link][data-value=lost]');
  await page.getByRole('link', { name: 'Runs' }).click();
  await page.getByText('the server does not answer').waitFor();
  console.log('behaves');
} finally {
  await browser.close();
  await empty.close();
  await server.close().catch(() => {});
}
